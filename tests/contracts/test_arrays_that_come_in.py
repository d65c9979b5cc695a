"""Entries that are masked or missing are refused at every public callable that takes numbers, by one sentence."""

import functools
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

import fastpriv as fp
from contracts.test_docstrings import found, public
from contracts.test_estimates_handed_on import INSIDE, numeric
from fastpriv import (
    Channel,
    DomainError,
    Estimate,
    GaussianMechanism,
    RandomizedResponse,
    calibration,
    notions,
)
from fastpriv import composition as risk
from fastpriv.base.validate import array, integers, real
from fastpriv.studies import auditing, membership  # fmt: skip

# Logarithms between 0 and 1 are rare outside of these tests, and warned of.
pytestmark = pytest.mark.filterwarnings("ignore:.*must hold natural logarithms:UserWarning")

PMF = fp.Pmf([20.0, 40.0], [0.5, 0.5])
P = fp.GaussianMixture([0.5, 0.5], [[0.0, 1.0], [2.0, 3.0]], 1.0)
LINE = fp.GaussianMixture([0.5, 0.5], [0.0, 2.0], 1.0)
ROWS = [[0.75, 0.25], [0.25, 0.75]]
HALF = [0.5, 0.5]
GAUSS = GaussianMechanism(1.0, 1.0)
CHANNEL = Channel(ROWS)
EYE = [[1.0, 0.5], [0.5, 1.0]]
SUBSETS = fp.SubsetLikelihood([0.0, -1.0, -2.0], np.ones((3, 3)), 2)
STEP = fp.BatchGradient.from_gradients([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 2, 1.0)
SEEN = fp.posterior(SUBSETS)
RUNS = auditing.RepeatedRuns(8, 10, 1, 10)
PEOPLE, OTHERS = membership.Panel([[1, 0], [1, 1]]), membership.Panel([[0, 0], [1, 0], [0, 1]])
ATTACKS = {name: getattr(membership, name)(PEOPLE, OTHERS)
           for name in ("FixedThresholdLRT", "AdaptiveThresholdLRT", "DworkScore")}  # fmt: skip
BEACON = membership.SequentialBeacon(OTHERS, n_members=1)
MISS = notions.pac_accuracy(GAUSS, 0.0, 0.0, alpha=1.0)
PANEL = membership.Panel([[1, 0, 1], [0, 1, 1]])
RELEASE = membership.FrequencyRelease(PANEL, membership.BernoulliMembership(0.5), membership.LaplaceNoise(0.5))
MIXTURE = membership.SeedMixtureAttacker(membership.FrequencyRelease(
    PANEL, membership.BernoulliMembership(0.5), membership.GeneratorNoise(
        lambda b, nu: np.zeros((len(b), 3)), 1, membership.GaussianNoise(0.5))), rng=1)  # fmt: skip
FEW = membership.FrequencyRelease(membership.Panel([[1], [0]]), membership.BernoulliMembership(0.5),
                                 membership.GaussianNoise(0.5))  # fmt: skip
VICTIM = fp.leakage.SoftmaxRegression(2, 2)
TASK = fp.leakage.LeakageTask("a", "b", np.eye(2), [0, 1], np.zeros((1, 2, 3)), 2, size=1, sigma=1.0)
LEARNT = fp.leakage.Training(VICTIM, learning_rate=0.5, batch="full")
UPDATES = LEARNT.run([[0.5, 0.25], [0.75, 1.0]], [0, 1], rng=1)
KNOWN = {"kind": "exact", "unit": "nats", "method": "given"}

CALLS = {  # name: calls that go through, as a function and its arguments
    "assess": [(fp.assess, {"data": [1.0, 2.0, 2.0], "sigma": [1.0, 2.0], "epsilon": [0.5, 1.0]}),
               (fp.assess, {"data": [1, 2, 2], "mechanism": "rr", "level": [0.5, 1.0], "epsilon": [0.5, 1.0]})],
    "sweep": [(lambda a, b: fp.sweep("bac_capacity", zip={"a": a, "b": b}), {"a": [0.1, 0.2], "b": [0.3, 0.4]})],
    "Estimate": [(lambda value, lower, upper: Estimate(value, lower, upper, **KNOWN),
                  {"value": [0.5, 0.5], "lower": [0.0, 0.0], "upper": [1.0, 1.0]})],
    "Channel": [(Channel, {"matrix": ROWS}), (Channel, {"matrix": np.log(ROWS), "log": True}),
                (CHANNEL.sample, {"secrets": [0, 1]}), (CHANNEL.then, {"post": [0, 1]}),
                (CHANNEL.then, {"post": ROWS}), (CHANNEL.column, {"output": 1})],
    "ChannelStack": [(fp.ChannelStack, {"matrices": [ROWS, ROWS]})],
    "SparseChannel": [(lambda background: fp.SparseChannel(csr_array((2, 2)), background), {"background": HALF})],
    "DefaultChannel": [(fp.DefaultChannel, {"inputs": 9, "default": HALF, "indices": [1, 2], "rows": ROWS})],
    "DiscreteLaplace": [(fp.DiscreteLaplace, {"n": 5, "scale": 1.0})],
    "ExponentialMechanism": [(fp.ExponentialMechanism, {"scores": ROWS, "epsilon": 1.0, "sensitivity": 1.0})],
    "posteriors.gaussian_abp": [(lambda sigma: fp.posteriors.gaussian_abp(fp.Pmf([0.0, 1.0], HALF), sigma),
                                 {"sigma": 1.0})],
    "GeometricMechanism": [(fp.GeometricMechanism, {"n": 5, "epsilon": 1.0})],
    "ProductChannel": [(lambda powers: fp.ProductChannel([CHANNEL, CHANNEL], powers), {"powers": [1, 2]}),
                       (CHANNEL.power(3).sample, {"secrets": [0, 1, 1]})],
    "RandomizedResponse": [(RandomizedResponse, {"k": 5, "epsilon": 1.0})],
    "SubsetSelection": [(fp.SubsetSelection, {"k": 5, "epsilon": 1.0, "size": 2}),
                        (fp.SubsetSelection(5, 1.0, 2).column, {"output": [1, 2]})],
    "UnaryEncoding": [(fp.UnaryEncoding, {"k": 5, "p": 0.7, "q": 0.2}),
                      (fp.UnaryEncoding.optimized, {"k": 5, "epsilon": 1.0}),
                      (fp.UnaryEncoding.optimized(2, 1.0).column, {"output": np.array([True, False])})],
    "DefaultLikelihood": [(fp.DefaultLikelihood, {"size": 9, "default": -1.0, "indices": [1, 2],
                                                  "values": [0.0, -2.0]})],
    "DenseLikelihood": [(lambda likelihood: fp.posterior(fp.DenseLikelihood(likelihood)), {"likelihood": HALF}),
                        (lambda likelihood: fp.posterior(lambda: iter([HALF, likelihood])), {"likelihood": HALF})],
    "IndexLikelihood": [(lambda function: fp.posterior(fp.IndexLikelihood(lambda d: function, 2)),
                         {"function": [0.0, -1.0]})],
    "ShardedLikelihood": [(lambda likelihood: fp.posterior(fp.ShardedLikelihood([likelihood, [0.0]])),
                           {"likelihood": HALF})],
    "ShardedChannel": [(lambda parts: fp.notions.summary(None, fp.ShardedChannel([parts, parts])).xi, {"parts": ROWS})],
    "ProductLikelihood": [(lambda factors, powers: fp.posterior(fp.ProductLikelihood([factors, [0.0, -1.0]], powers)),
                           {"factors": HALF, "powers": [1, 2]}),
                          (lambda prior: fp.posterior(fp.ProductLikelihood([[0.0, -1.0]]), [prior]), {"prior": HALF})],
    "SubsetLikelihood": [(fp.SubsetLikelihood, {"linear": [0.0, -1.0], "pairwise": EYE, "members": 1, "constant": 0.0}),
                         (fp.SubsetLikelihood.from_gram, {"products": HALF, "gram": EYE, "members": 1, "sigma": 1.0}),
                         (SUBSETS.log_likelihood, {"subset": [0, 1]}),
                         (lambda prior: fp.posterior(SUBSETS, prior), {"prior": [1.0, 2.0, 1.0]})],
    "posterior": [(fp.posterior, {"likelihood": [-1.0, -2.0], "prior": HALF}),
                  (fp.posterior, {"likelihood": [-1.0, -2.0], "log_prior": [-0.6931471805599453] * 2}),
                  (lambda prior: fp.posterior(fp.DefaultLikelihood(2, -1.0, [0], [0.0]), prior), {"prior": HALF}),
                  (lambda prior: fp.posterior(fp.IndexLikelihood(lambda d: -1.0 * d, 2), prior), {"prior": HALF})],
    "posterior_mode": [(fp.posterior_mode, {"likelihood": [-1.0, -2.0], "prior": HALF})],
    "Density": [(lambda log_density: fp.Density(lambda x: log_density, lambda rng, n: rng.normal(size=n), dimension=1,
                                                vectorized=True).log_density([0.5, 1.5]), {"log_density": HALF}),
                (lambda x: fp.Density(lambda x: -(x * x).sum(axis=1), lambda rng, n: rng.normal(size=n), dimension=1,
                                      vectorized=True).log_density(x), {"x": HALF}),
                (lambda sampler: fp.Density(lambda x: -x * x / 2, lambda rng, n: sampler, dimension=1,
                                            vectorized=True).sample(2, rng=1), {"sampler": HALF})],
    "GaussianMixture": [(fp.GaussianMixture, {"weights": HALF, "means": ROWS, "sigmas": [1.0, 2.0]}),
                        (lambda covariances: fp.GaussianMixture(HALF, ROWS, covariances=covariances),
                         {"covariances": EYE}),
                        (fp.GaussianMixture.single, {"mean": HALF, "sigma": 1.0}),
                        (P.marginal, {"indices": [0, 1]}), (P.affine, {"matrix": ROWS, "shift": HALF}),
                        (P.log_density, {"x": ROWS})],
    "LogRatio": [(lambda log_ratio: fp.LogRatio(lambda x: log_ratio, lambda rng, n: rng.normal(size=n), dimension=1,
                                                vectorized=True).log_ratio([0.5, 1.5]), {"log_ratio": HALF})],
    "MixtureStack": [(fp.MixtureStack, {"weights": HALF, "means": ROWS, "sigmas": [1.0, 2.0]}),
                     (lambda covariances: fp.MixtureStack(HALF, ROWS, covariances=covariances, dimension=2),
                      {"covariances": EYE}),
                     (lambda epsilon: fp.hockey_stick_divergence(fp.MixtureStack(HALF, ROWS, 1.0), LINE, epsilon),
                      {"epsilon": [0.5, 1.0]})],
    "PmfStack": [(fp.PmfStack, {"values": [1.0, 2.0], "probabilities": [HALF, HALF]}),
                 (fp.PmfStack([0.0, 1.0], [HALF, HALF]).through_gaussian, {"sigma": [1.0, 2.0]})],
    "MechanismStack": [(lambda epsilon: fp.MechanismStack(fp.RandomizedResponse, 3, epsilon), {"epsilon": [0.5, 1.0]}),
                       (lambda scores: fp.MechanismStack(fp.ExponentialMechanism, scores, 1.0), {"scores": ROWS})],
    "Pmf": [(fp.Pmf, {"values": [1.0, 2.0], "probabilities": HALF}), (fp.Pmf.from_data, {"column": [1.0, 2.0, 2.0]}),
            (PMF.through_gaussian, {"sigma": 1.0})],
    "hockey_stick_divergence": [(lambda epsilon: fp.hockey_stick_divergence(LINE, LINE, epsilon),
                                 {"epsilon": [0.5, 1.0]})],
    "BandedMatrixMechanism": [(lambda coefficients: fp.BandedMatrixMechanism(coefficients, 2.0, 40).delta(2.0),
                               {"coefficients": [1.0, 0.5]})],
    "compose": [(lambda p, q: fp.compose((p, q), [3]), {"p": HALF, "q": HALF}),
                (lambda epsilon: fp.compose(fp.LaplaceMechanism(1.0)).delta(epsilon), {"epsilon": [0.5, 1.0]}),
                (lambda delta: fp.compose(fp.GaussianMechanism(1.0, 1.0)).epsilon(delta), {"delta": [0.1, 0.2]})],
    "composition.PrivacyLossDistribution": [(fp.composition.PrivacyLossDistribution,
                                             {"losses": [0.0, 1.0], "masses": HALF})],
    "composition.largest_count": [(lambda delta: fp.composition.largest_count(
        fp.GaussianMechanism(5.0, 1.0), epsilon=1.0, delta=delta), {"delta": [0.1, 0.2]})],
    "composition.least_sigma": [(lambda delta: fp.composition.least_sigma(
        lambda s: fp.GaussianMechanism(s, 1.0), epsilon=1.0, delta=delta), {"delta": [0.1, 0.2]})],
    "LaplaceMechanism": [(fp.LaplaceMechanism(2.0).delta, {"epsilon": [0.1, 0.2]}),
                         (fp.LaplaceMechanism(2.0).epsilon, {"delta": [0.1, 0.2]})],
    "composition.trade_off_curve": [(lambda alpha: risk.trade_off_curve(LINE, LINE, alpha), {"alpha": [0.05, 0.5]}),
                             (risk.trade_off_curve, {"p": HALF, "q": HALF, "alpha": 0.5})],
    "composition.true_positive_rate": [(risk.true_positive_rate, {"p": HALF, "q": HALF, "false_positive_rate": 0.5})],
    "composition.reconstruction_robustness": [
        (risk.reconstruction_robustness, {"p": HALF, "q": HALF, "baseline": [0.5]})
    ],
    "composition.gaussian_dp_fit": [(risk.gaussian_dp_fit, {"p": HALF, "q": HALF}),
                             (lambda alpha: risk.gaussian_dp_fit(HALF, HALF, alpha=alpha), {"alpha": [0.1, 0.5]})],
    "composition.trade_off_excess": [
        (lambda p: risk.trade_off_excess(p, HALF, trade_off=lambda a: 0.0 * a), {"p": HALF})
    ],
    "repeated_releases": [(fp.repeated_releases, {"mechanism": [[0.75, 0.25], [0.25, 0.75]], "count": [2]})],
    "composition.advantage": [(risk.advantage, {"p": HALF, "q": HALF})],
    "composition.bayes_risk": [(risk.bayes_risk, {"p": HALF, "q": HALF, "prior": [0.25, 0.5]})],
    "composition.membership_advantage_bound": [
        (risk.membership_advantage_bound, {"epsilon": [0.5, 1.0], "delta": 0.1})
    ],
    "composition.privacy_profile": [(risk.privacy_profile, {"p": HALF, "q": HALF, "epsilon": [-0.5, 1.0]})],
    "composition.compare_mechanisms": [(lambda tolerance: risk.compare_mechanisms((HALF, HALF), (HALF, HALF),
                                                                              tolerance=tolerance),
                                 {"tolerance": 1e-9})],
    "auditing.RepeatedRuns": [(auditing.RepeatedRuns, {
        "true_positives": [8, 9], "members": 10, "false_positives": [1, 2], "non_members": [10, 12]})],
    "auditing.OneRun": [(auditing.OneRun, {"correct": [8, 9], "guesses": 10, "canaries": [10, 12]})],
    "auditing.audit_epsilon": [(lambda delta: auditing.audit_epsilon(RUNS, delta=delta), {"delta": 0.1})],
    "auditing.audit_delta": [(lambda epsilon: auditing.audit_delta(RUNS, epsilon), {"epsilon": 0.5})],
    "auditing.audit_p_value": [
        (lambda epsilon, delta: auditing.audit_p_value(RUNS, epsilon=epsilon, delta=delta),
         {"epsilon": [0.5, 1.0], "delta": 0.1}),
        (lambda p, q: auditing.audit_p_value(RUNS, p, q), {"p": HALF, "q": HALF})],
    "auditing.audit_scores": [(auditing.audit_scores, {"scores": [0.1, 0.4, 0.35, 0.8], "membership": [0, 0, 1, 1]})],
    "log_hockey_stick_divergence": [(lambda epsilon: fp.log_hockey_stick_divergence(LINE, LINE, epsilon),
                                     {"epsilon": [0.5, 1.0]})],
    "renyi_divergence": [(lambda order: fp.renyi_divergence(LINE, LINE, order), {"order": 2.0})],
    "rank_of_subset": [(fp.rank_of_subset, {"subset": [0, 1], "pool": 5})],
    "subset_of_rank": [(fp.subset_of_rank, {"rank": [0, 1], "pool": 5, "size": 2})],
    "BatchGradient": [(fp.BatchGradient, {"errors": ROWS, "features": ROWS, "size": 1, "sigma": 1.0}),
                      (fp.BatchGradient.from_gradients, {"gradients": ROWS, "size": 1, "sigma": 1.0}),
                      (fp.BatchGradient.softmax_regression, {"records": ROWS, "labels": [0, 1], "weights": ROWS,
                                                             "size": 1, "sigma": 1.0}),
                      (STEP.gradient, {"batch": [0, 1]}), (STEP.sample, {"batch": [0, 1]}),
                      (STEP.column, {"output": [[0.5, 0.5]]})],
    "GaussianMechanism": [(GaussianMechanism, {"sigma": [1.0, 2.0], "sensitivity": [1.0, 2.0]}),
                          (GAUSS.delta, {"epsilon": [0.5, 1.0]}), (GAUSS.epsilon, {"delta": [0.1, 0.2]}),
                          (GAUSS.log_delta, {"epsilon": [0.5, 1.0]}),
                          (GAUSS.epsilon_from_log_delta, {"log_delta": [-2.0, -1.0]}),
                          (GaussianMechanism.calibrated, {"epsilon": [0.5, 1.0], "delta": [0.1, 0.2],
                                                          "sensitivity": 1.0}),
                          (GaussianMechanism.calibrated_from_log_delta, {
                              "epsilon": [0.5, 1.0], "log_delta": [-2.0, -1.0], "sensitivity": 1.0}),
                          (GAUSS.conditional_distribution, {"x": 1.0})],
    "awgn_capacity": [(fp.awgn_capacity, {"dimension": [1, 2], "amplitude": [1.0, 2.0], "sigma": [1.0, 2.0]})],
    "bac_capacity": [(fp.bac_capacity, {"a": [0.1, 0.2], "b": [0.2, 0.3]}),
                     (fp.bac_capacity, {"a": HALF, "b": HALF, "complement_a": HALF, "complement_b": HALF})],
    "binary_entropy": [(fp.binary_entropy, {"p": [0.1, 0.2]}), (fp.binary_entropy, {"p": HALF, "complement": HALF})],
    "channel_capacity": [(fp.channel_capacity, {"channel": ROWS})],
    "maximal_leakage": [(fp.maximal_leakage, {"channel": ROWS})],
    "average_power_capacity": [(fp.average_power_capacity, {"dimension": [1, 2], "amplitude": [1.0, 2.0],
                                                            "sigma": [1.0, 2.0]})],
    "gaussian_game": [(fp.gaussian_game, {"dimension": 2, "signal_power": 1.0, "noise_power": 2.0})],
    "gaussian_information": [(fp.gaussian_information, {"signal": EYE, "noise": EYE})],
    "noise_filling": [(fp.noise_filling, {"signal": EYE, "power": 1.0})],
    "saddle_point_gaps": [(fp.saddle_point_gaps, {"signal": EYE, "noise": EYE, "signal_power": 2.0,
                                                  "noise_power": 2.0})],
    "water_filling": [(fp.water_filling, {"noise": EYE, "power": 1.0})],
    "rate_distortion": [(fp.rate_distortion, {"source": [0.5, 0.5], "distortion": ROWS, "slope": 1.0}),
                        (fp.rate_distortion, {"source": [0.5, 0.5], "distortion": ROWS, "level": 0.5})],
    "mutual_information": [(lambda sigma: fp.mutual_information(PMF, sigma), {"sigma": 1.0})],
    "conversions.ci_lmip_from_dp_curve": [
        (lambda curve: fp.conversions.ci_lmip_from_dp_curve(lambda e: curve, decay=3.0), {"curve": 0.25})],
    "conversions.dp_extremal_channel": [
        (fp.conversions.dp_extremal_channel, {"mu": [0.1, 0.2], "epsilon": [0.5, 1.0]})],
    "conversions.lip_extremal_channel": [
        (fp.conversions.lip_extremal_channel, {"mu": [0.1, 0.2], "epsilon": [0.5, 1.0], "pi_min": [0.4, 0.5]}),
        (fp.conversions.lip_extremal_channel, {"mu": [0.1, 0.2], "epsilon": [0.5, 1.0]})],
    "calibration.sigma_from_cd_lmip": [(lambda mu: calibration.sigma_from_cd_lmip(mu, PMF), {"mu": [0.1, 0.2]})],
    "calibration.sigma_from_ci_lmip": [(calibration.sigma_from_ci_lmip, {"mu": [0.1, 0.2], "dimension": 2,
                                                                         "amplitude": 1.0})],
    "calibration.sigma_from_ldp": [(calibration.sigma_from_ldp, {"epsilon": [0.5, 1.0], "delta": [0.1, 0.2],
                                                                 "sensitivity": [1.0, 2.0]})],
    "calibration.sigma_from_ldp_log_delta": [(calibration.sigma_from_ldp_log_delta, {
        "epsilon": [0.5, 1.0], "log_delta": [-2.0, -1.0], "sensitivity": 1.0})],
    "calibration.sigma_from_lip": [(lambda epsilon, delta: calibration.sigma_from_lip(epsilon, delta, PMF),
                                    {"epsilon": [0.5, 1.0], "delta": [0.1, 0.2]})],
    "calibration.sigma_from_lip_log_delta": [(
        lambda epsilon, log_delta: calibration.sigma_from_lip_log_delta(epsilon, log_delta, PMF),
        {"epsilon": [0.5, 1.0], "log_delta": [-2.0, -1.0]})],
    "calibration.sigma_from_pointwise_lmip": [(lambda mu: calibration.sigma_from_pointwise_lmip(mu, PMF),
                                               {"mu": [0.1, 0.2]})],
    "conversions.convert": [(lambda epsilon: fp.conversions.convert("mbp", "ldp", epsilon=epsilon, pi_min=0.1),
                             {"epsilon": [0.3, 0.4]})],
    "conversions.dp_delta_from_tradeoff": [(fp.conversions.dp_delta_from_tradeoff, {
        "type_one": [0.0, 0.5, 1.0], "type_two": [1.0, 0.2, 0.0], "epsilon": [0.3, 0.4]})],
    "report.profile": [(lambda epsilon: fp.figures.profile(fp.GaussianMechanism(1.0, 1.0).delta([0.5, 1.0]), epsilon),
                         {"epsilon": [0.5, 1.0]})],
    "report.composed_profile": [(lambda epsilon: fp.figures.composed_profile(
        fp.GaussianMechanism(1.0, 1.0).log_delta([0.5, 1.0]), epsilon), {"epsilon": [0.5, 1.0]})],
    "report.batch_entropy": [(lambda sigma: fp.figures.batch_entropy(sigma, [SEEN]), {"sigma": [1.0]})],
    "report.membership": [(lambda sigma, batch: fp.figures.membership(sigma, [SEEN], batch),
                            {"sigma": [1.0], "batch": [0, 1]})],
    "leakage.match_to_pool": [
        (fp.leakage.match_to_pool, {"reconstructions": [[0.5, 1.0]], "pool": [[0.0, 1.0], [3.0, 2.0]]})],
    "leakage.bayesian_privacy_estimate": [(functools.partial(fp.leakage.bayesian_privacy_estimate, rng=1), {
        "attributions": [[[0], [1]]], "pool": [0.25, 0.75], "batch": [1]})],
    "leakage.neighbour_outputs": [(lambda records, labels: fp.leakage.neighbour_outputs(
        lambda x, y: x.sum() + y.sum(), records, labels, neighbours=2, rng=1), {
            "records": [0.5, 1.0, 2.0], "labels": [0, 1, 1]})],
    "leakage.accuracy_tradeoff": [(fp.leakage.accuracy_tradeoff, {
        "outputs": [[0.0, 1.0], [0.5, 1.0]], "scales": [0.5, 1.0], "alpha": 1.0, "target": [0.0, 0.5],
        "prior": [0.25, 0.75]})],
    "leakage.leakage_study": [(lambda records, labels, pool, batch, weights: fp.leakage.leakage_study(
        VICTIM, records, labels, [fp.leakage.Protection()], pool=pool, batch=batch, weights=weights, n_models=2,
        n_attacks=1, rng=1).rows(), {
            "records": [[0.5, 1.0], [1.0, 0.0], [2.0, 1.0]], "labels": [0, 1, 1], "pool": [0, 2], "batch": [1],
            "weights": [[0.5, 1.0, 0.0, 0.25, 0.5, 1.0]] * 2})],
    "leakage.SoftmaxRegression": [
        (VICTIM.gradient, {"weights": np.zeros(6), "records": ROWS, "labels": [0, 1]}),
        (VICTIM.matching, {"weights": np.zeros(6), "records": ROWS, "labels": [0, 1], "target": np.ones(6)}),
        (VICTIM.logits, {"weights": np.zeros(6), "records": ROWS})],
    "leakage.MultilayerPerceptron": [
        (fp.leakage.MultilayerPerceptron(2, [1], 2).losses,
         {"weights": np.zeros(7), "records": ROWS, "labels": [0, 1]})],
    "leakage.LeakageTask": [(lambda records, labels, weights: fp.leakage.LeakageTask(
        "a", "b", records, labels, weights, 2, size=1, sigma=1.0).outputs, {
            "records": ROWS, "labels": [0, 1], "weights": np.zeros((1, 2, 3))})],
    "leakage.leakage_scoreboard": [(lambda scores: fp.leakage.leakage_scoreboard({"a": scores}, [TASK]).scores[0].auc, {
        "scores": ROWS})],
    "leakage.score_attack": [
        (lambda scores, guesses: fp.leakage.score_attack(TASK, scores, guesses=guesses).auc, {
            "scores": ROWS, "guesses": [[0], [1]]}),
        (lambda records: fp.leakage.score_attack(TASK, records=records).success, {"records": [ROWS[:1], ROWS[1:]]})],
    "leakage.check_gradient": [(functools.partial(fp.leakage.check_gradient, VICTIM), {
        "weights": np.zeros(6), "records": ROWS, "labels": [0, 1]})],
    "leakage.Protection": [(fp.leakage.Protection(clip_batch=1.0).apply, {"mean": [1.0, 2.0]})],
    "leakage.GradientMatching": [
        (lambda public_records: fp.leakage.GradientMatching(public_records=public_records).public_records,
         {"public_records": ROWS}),
        (lambda labels: fp.leakage.GradientMatching().reconstruct(UPDATES, rng=1, labels=labels).records,
         {"labels": [0, 1]})],
    "leakage.GradientProductAttack": [(functools.partial(fp.leakage.GradientProductAttack().scores, UPDATES), {
        "records": ROWS, "labels": [0, 1]})],
    "leakage.LossAttack": [(functools.partial(fp.leakage.LossAttack().scores, UPDATES), {
        "records": ROWS, "labels": [0, 1]})],
    "leakage.PoolPursuit": [
        (lambda records, labels: fp.leakage.PoolPursuit(records, labels).reconstruct(UPDATES).members,
         {"records": ROWS, "labels": [0, 1]})],
    "leakage.invert_single_record": [(lambda gradient: fp.leakage.invert_single_record(VICTIM, gradient).records, {
        "gradient": np.arange(6.0)})],
    "leakage.recover_labels": [
        (lambda gradient, weights, records: fp.leakage.recover_labels(
            VICTIM, gradient, 2, weights=weights, records=records).counts,
         {"gradient": np.zeros(6), "weights": np.zeros(6), "records": ROWS})],
    "leakage.Training": [(lambda records, labels, weights: LEARNT.run(records, labels, weights=weights, rng=1).shared, {
        "records": ROWS, "labels": [0, 1], "weights": np.zeros(6)})],
    "membership.auc": [(membership.auc, {"scores": [0.1, 0.4, 0.35, 0.8], "membership": [0, 0, 1, 1]})],
    "membership.evaluate_attack": [(membership.evaluate_attack, {
        "scores": [0.1, 0.4, 0.35, 0.8], "membership": [0, 0, 1, 1], "gamma": [0.3, 0.5]})],
    "membership.roc_curve": [(membership.roc_curve, {"scores": [0.1, 0.4, 0.35, 0.8], "membership": [0, 0, 1, 1]})],
    "membership.FixedThresholdLRT": [(ATTACKS["FixedThresholdLRT"].scores, {"released": [0.25, 0.75]})],
    "membership.AdaptiveThresholdLRT": [(ATTACKS["AdaptiveThresholdLRT"].scores, {"released": [0.25, 0.75]})],
    "membership.DworkScore": [(ATTACKS["DworkScore"].scores, {"released": [0.25, 0.75]})],
    "membership.SequentialBeacon": [(lambda targets, answers: BEACON.run(targets, answers, queries=1).queried, {
        "targets": [[1, 0]], "answers": [1.0, 0.0]})],
    "notions.abp": [(notions.abp, {"prior": HALF, "mechanism": CHANNEL, "secret": [0, 1]}),
                    (notions.abp, {"prior": HALF, "mechanism": CHANNEL, "release": [0.25, 0.75],
                                   "belief": [0.75, 0.25]}),
                    (lambda secret: notions.abp(None, CHANNEL.power(30), secret=secret), {"secret": [0, 1]})],
    "notions.abp_claim": [(lambda leakage, epsilon, beta: notions.abp_claim(leakage, MISS, epsilon=epsilon, beta=beta),
                           {"leakage": 0.1, "epsilon": 0.5, "beta": 0.2})],
    "notions.mbp_claim": [(lambda leakage, epsilon, beta: notions.mbp_claim(leakage, MISS, epsilon=epsilon, beta=beta),
                           {"leakage": 0.1, "epsilon": 0.5, "beta": 0.2})],
    "notions.ldp_delta": [(notions.ldp_delta, {"prior": HALF, "mechanism": CHANNEL, "epsilon": [0.5, 1.0]})],
    "notions.lip_delta": [(notions.lip_delta, {"prior": HALF, "mechanism": CHANNEL, "epsilon": [0.5, 1.0]}),
                          (notions.lip_delta, {"prior": PMF, "mechanism": GAUSS, "epsilon": [0.5, 1.0]})],
    "notions.lip_curves": [(notions.lip_curves, {"prior": PMF, "mechanism": GAUSS, "epsilon": [0.5, 1.0]})],
    "notions.log_lip_delta": [(notions.log_lip_delta, {"prior": PMF, "mechanism": GAUSS, "epsilon": [0.5, 1.0]})],
    "notions.renyi_leakage": [(notions.renyi_leakage, {"prior": HALF, "mechanism": CHANNEL, "order": 2.0})],
    "notions.pac_accuracy": [
        (notions.pac_accuracy, {"mechanism": GAUSS, "secret": [0.0, 0.0], "target": [0.0, 0.0], "alpha": [1.0, 2.0]}),
        (notions.pac_accuracy, {"mechanism": CHANNEL, "secret": 1, "target": 0.5, "alpha": [0.2, 1.0]}),
        (lambda mechanism: notions.pac_accuracy(lambda rng, n, s: np.ma.concatenate([mechanism] * (n // 2)) if
                                                isinstance(mechanism, np.ma.MaskedArray) else np.resize(mechanism, n),
                                                0.0, 0.0, alpha=1.0, max_samples=512, rng=1), {"mechanism": HALF})],
    "notions.robust_accuracy": [(notions.robust_accuracy, {"mechanism": CHANNEL, "neighbours": [0, 1], "target": 0.5,
                                                           "alpha": [0.2, 1.0]})],
    "notions.summary": [(notions.summary, {"prior": HALF, "mechanism": CHANNEL, "secret": [0, 1]}),
                        (notions.summary, {"prior": HALF, "mechanism": CHANNEL, "release": [0.25, 0.75],
                                           "belief": [0.75, 0.25]})],
    "membership.bwma": [(lambda gamma: membership.bwma(FEW, gamma), {"gamma": [0.3, 0.5]})],
    "membership.membership_posterior": [
        (functools.partial(membership.membership_posterior, RELEASE), {"released": [0.5, 0.5, 1.0]}),
        (lambda released: membership.membership_posterior(RELEASE, released, method="gibbs", sweeps=64, rng=1),
         {"released": [0.5, 0.5, 1.0]})],
    "membership.BayesAttacker": [
        (membership.BayesAttacker(RELEASE).claims, {"released": [0.5, 0.5, 1.0], "gamma": 0.5})],
    "membership.OptimalLRT": [(membership.OptimalLRT(RELEASE).scores, {"released": [0.5, 0.5, 1.0]})],
    "membership.best_response": [
        (lambda weights: fp.membership.best_response(
            ATTACKS["AdaptiveThresholdLRT"], price=1.0, attribute_weights=weights), {"weights": [0.5, 1.0]})],
    "membership.FiniteDefence": [
        (lambda releases, table: membership.FiniteDefence(
            membership.Panel([[1], [0]]), membership.FixedSizeMembership(1), releases, table), {
                "releases": [[0.0], [1.0]], "table": [[0.75, 0.25], [0.25, 0.75]]})],
    "membership.joint_posterior_epsilon": [
        (lambda released: membership.joint_posterior_epsilon(RELEASE, released), {"released": [0.5, 0.5, 1.0]})],
    "membership.membership_equilibrium": [
        (lambda weights: fp.membership.membership_equilibrium(
            PEOPLE, fp.membership.FixedSizeMembership(1), slope=1.0, attribute_weights=weights),
         {"weights": [0.5, 1.0]})],
    "membership.SeedMixtureAttacker": [
        (MIXTURE.claims, {"released": [0.5, 0.5, 1.0], "gamma": 0.5}),
        (MIXTURE.log_likelihood, {"released": [0.5, 0.5, 1.0], "b": [1, 0]})],
    "membership.LMMSEAttacker": [
        (membership.LMMSEAttacker(RELEASE).claims, {"released": [0.5, 0.5, 1.0], "gamma": 0.5})],
    "membership.Panel": [(membership.Panel, {"values": [[1, 0], [0, 1]]}),
                         (membership.Panel.from_packed, {"bits": [[1], [2]], "n_attributes": 2}),
                         (PANEL.select, {"people": [0], "attributes": [2, 1]}),
                         (PANEL.products, {"x": [0.5, 1.5, 0.0]}), (PANEL.counts, {"membership": [1, 0]})],
    "membership.BernoulliMembership": [(membership.BernoulliMembership, {"q": [0.5, 0.25]})],
    "membership.FixedSizeMembership": [(membership.FixedSizeMembership, {"n0": 2})],
    "membership.GaussianNoise": [(membership.GaussianNoise, {"sigma": [1.0, 2.0]}),
                                 (membership.GaussianNoise.from_epsilon_delta, {
                                     "epsilon": 1.0, "delta": 0.1, "n": [1, 2], "n_attributes": 3})],
    "membership.LaplaceNoise": [(membership.LaplaceNoise, {"scale": [1.0, 2.0]}),
                                (membership.LaplaceNoise.from_epsilon, {"epsilon": 1.0, "n": 5, "n_attributes": 3})],
    "membership.LInfinityNoise": [(membership.LInfinityNoise, {"scale": [1.0, 2.0]}),
                                  (membership.LInfinityNoise.from_epsilon, {
                                      "epsilon": 1.0, "n": 5, "n_attributes": 3})],
    "membership.FrequencyRelease": [(RELEASE.log_likelihood, {"released": [0.5, 0.5, 1.0], "b": [1, 1]}),
                                    (RELEASE.release, {"b": [1, 1]}), (RELEASE.frequencies, {"b": [1, 1]}),
                                    (RELEASE.epsilon, {"delta": 0.0})],
} | {
    f"notions.{name}": [(getattr(notions, name), {"prior": HALF, "mechanism": CHANNEL})]
    for name in ("bayes_vulnerability", "cd_lmip", "ldp_epsilon", "lip_epsilon", "map_secrets", "maximal_leakage",
                 "mbp", "min_entropy_leakage", "pointwise_lmip")
} | {
    f"conversions.{row.function}": [(function, {
        name: INSIDE[name] if isinstance(INSIDE.get(name), list) else [INSIDE.get(name, 0.3)] * 2 for name in names})]
    for row, function, names in numeric() if row.default and row.function != "dp_delta_from_tradeoff"
}  # fmt: skip

NO_ARRAYS = {  # take no arrays of numbers: files and their names, objects made of checked arrays, results
    "BallsInBins", "RandomAllocation", "composition.BallsInBins", "composition.RandomAllocation",
    "SampledSubsetPosterior", "sampled_subset_posterior",
    "leakage.AttackScore", "leakage.Scoreboard", "leakage.leakage_tasks", "leakage.read_task_scores",
    "leakage.RecoveredLabels", "leakage.Reconstruction", "leakage.TorchModel", "leakage.TrainableModel",
    "leakage.Updates", "leakage.from_scikit_learn",
    "membership.bgp_risk", "membership.conditional_entropies",
    "membership.JointRiskComposition", "membership.covariance_bound", "membership.joint_risk_composition",
    "membership.joint_risk_from_mmse", "membership.subjective_risk",
    "membership.CombinedReleases", "membership.GeneratorNoise", "membership.NoNoise", "membership.SimulatedReleases",
    "membership.read_panel", "membership.write_panel",
    "auditing.ScoreAudit", "auditing.audit_gaussian_dp", "auditing.audit_parameter", "auditing.read_scores",
    "report.audit",
    "Assessment", "Comparison", "SweepPlan", "SweepTable", "WorkerDiedError",
    "read_categories", "read_column", "show_versions", "BackendMissingError", "DomainError",
    "NotConvergedError", "SamplingWarning", "ShapeError", "Sampling", "AnyChannel", "Likelihood", "Posterior",
    "read_channel", "write_channel", "DefaultColumn", "ProductColumn", "ExtremeLogRatios", "RowPair", "TypeClasses",
    "RepeatedChannel",
    "get_include", "read_mixture", "write_mixture", "total_variation", "AwgnCapacity", "ChannelCapacity",
    "GaussianGame",
    "NoiseFilling", "SaddlePointGaps", "WaterFilling", "RateDistortion", "Mode",
    "adapters.PldCurve", "composition.TradeOffCurve", "composition.MechanismComparison",
    "composition.OrderCounterexample",
    "adapters.mixture_from_scipy", "adapters.mixture_from_sklearn",
    "adapters.scipy_from_mixture", "adapters.sklearn_from_mixture", "adapters.dp_accounting_pld",
    "adapters.composition_from_dp_events", "adapters.composition_from_opacus", "Composition", "PoissonSampledGaussian",
    "kl_divergence", "jensen_shannon", "entropy", "label_information", "conversions.HockeyStickCurve",
    "conversions.LipCurve", "conversions.cd_lmip_from_hockey_sticks", "conversions.ExtremalPair", "conversions.Notion",
    "conversions.Assumption", "conversions.Conversion", "conversions.ConversionResult", "conversions.ConversionStep",
    "conversions.markdown", "conversions.table", "datasets.adult", "datasets.digits", "datasets.genotypes",
    "membership.Paper", "membership.PaperFigure", "report.assessment", "report.categories", "report.column",
    "report.accuracy_against_privacy", "report.estimates_against_noise", "report.misses_against_privacy",
    "leakage.AccuracyTradeoff", "leakage.ReconstructionExample",
    "leakage.BayesianPrivacyEstimate", "leakage.ExactLeakage", "leakage.LeakageOutcome", "leakage.LeakageStudy",
    "report.conversions_diagram", "report.curves", "report.information", "report.leakage", "report.levels",
    "membership.paper", "membership.paper_panel", "report.comparison", "notions.AverageBayesianPrivacy",
    "notions.ChannelSummary", "notions.MaximumBayesianPrivacy", "notions.RobustAccuracy", "notions.Verdict",
    "notions.ci_lmip", "membership.AttackEvaluation", "membership.BeaconPower", "membership.BeaconRun",
    "membership.ClassifierAttacker", "membership.NetworkAttacker", "membership.RocCurve",
    "membership.CalibrationCheck", "membership.MembershipPosterior",
    "membership.calibration_check",
    "membership.AttackResult", "membership.DefenceEvaluation", "membership.evaluate_defence",
    "membership.DefenceJudgement", "membership.JudgedAttack",
    "membership.MembershipEquilibrium", "membership.TrainedGenerator", "membership.judge_defence",
    "membership.train_generator", "membership.AttackOutcome", "membership.AttackStudy", "membership.PaperComparison",
    "membership.PaperComparisons", "membership.PaperStatement", "membership.PaperStatements",
    "membership.PosteriorExample", "membership.attack_study", "membership.paper_comparisons",
    "membership.paper_statements",
}  # fmt: skip
CURVES = {"kl_from_dp_curve", "cd_lmip_from_lip_curve"}  # functions of curves, as ci_lmip_from_dp_curve is
PLAIN = [(name, i) for name, calls in CALLS.items() for i in range(len(calls))]


def places(given):
    """The arguments that are numbers or arrays of them."""
    for name, value in given.items():
        cells = np.asarray(value) if not callable(value) else np.array("")
        if cells.dtype.kind in "fiub" and not isinstance(value, bool):
            yield name, cells


def masked(cells):
    return np.ma.array(cells, mask=np.arange(cells.size).reshape(cells.shape) == cells.size - 1)


def with_none(cells):
    flat = cells.ravel().astype(object)
    flat[-1] = None
    return flat.reshape(cells.shape).tolist() if cells.ndim else None


def test_every_public_name_is_looked_at():
    names = {name for name in public() if not isinstance(found(name), np.ufunc)}
    doubled = {name.rpartition(".")[2] for name in CALLS} | CURVES | NO_ARRAYS | NO_ARRAYS
    missing = {name for name in names - set(CALLS) - NO_ARRAYS if name.rpartition(".")[2] not in doubled}
    assert not missing, f"add a call that goes through, or say that it takes no arrays: {sorted(missing)}"


@pytest.mark.parametrize(("name", "i"), PLAIN)
def test_what_is_masked_or_missing_is_refused(name, i):
    function, given = CALLS[name][i]
    for argument, cells in places(given):
        wrong = [masked(cells)]
        if cells.ndim:
            wrong.append(with_none(cells))
        for value in wrong:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(DomainError) as caught:
                    function(**{**given, argument: value})
            text = str(caught.value)
            if isinstance(value, list) and (name == "Estimate" or argument == "neighbours"):
                assert "nan" in text or text.startswith(argument), (argument, text)
                continue
            what = "None" if isinstance(value, list) else "a masked entry"
            assert f"must have no missing values; got {what}" in text, (argument, text)
            assert text.startswith(argument) or argument in text.partition(" must")[0], (argument, text)


@pytest.mark.parametrize(("name", "i"), PLAIN)
def test_a_mask_that_hides_nothing_is_data(name, i):
    function, given = CALLS[name][i]
    open_masks = {argument: np.ma.array(cells, mask=False) for argument, cells in places(given) if cells.ndim}
    assert same_answer(function(**{**given, **open_masks}), function(**given))


def same_answer(one, other):
    """Whether two answers are of one type, and estimates the same numbers."""
    numbers = [(x.value, x.lower, x.upper) if isinstance(x, Estimate) else () for x in (one, other)]
    return type(one) is type(other) and all(map(np.array_equal, *numbers))


def absent():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    return {
        "Int64": pandas.Series([1, None], dtype="Int64"), "Float64": pandas.array([0.5, None], dtype="Float64"),
        "boolean": pandas.array([True, None], dtype="boolean"), "string": pandas.array(["a", None], dtype="string"),
        "category": pandas.Categorical([1, None]), "frame": pandas.DataFrame({"a": pandas.array([1, None])}),
        "index": pandas.Index([1, None], dtype="Int64"), "arrow in pandas": pandas.Series([1.0, None],
                                                                                        dtype="double[pyarrow]"),
        "times": pandas.to_datetime(["2020", None]), "arrow": arrow.array([1, None]),
        "arrow chunks": arrow.chunked_array([[1.0], [None]]), "arrow words": arrow.array(["a", None]),
        "arrow booleans": arrow.array([True, None]), "list": [1.0, pandas.NA], "NaT": [pandas.NaT, 1.0],
        "objects": np.array([1.0, pandas.NA], dtype=object),
        "masked objects": np.array([1.0, np.ma.masked], dtype=object),
        "nested": [np.ma.array([1.0, 2.0], mask=[0, 1]), [1.0, 2.0]], "deep": ([1.0, [np.ma.masked]],),
        "records": np.ma.array(np.zeros(2, dtype="i4,f4"), mask=[(0, 0), (0, 1)]),
    }  # fmt: skip


def test_missing_values_of_every_kind():
    for name, value in absent().items():
        with pytest.raises(DomainError, match="x must have no missing values; got .* at index .*Fill them in"):
            array("x", value)
        with pytest.raises(DomainError, match="x must have no missing values; got"):
            real("x", value)
        with pytest.raises(DomainError, match="x must have no missing values; got"):
            integers("x", value)
        if name in ("Int64", "Float64", "category", "index", "arrow in pandas", "arrow", "arrow chunks", "arrow words"):
            with pytest.raises(DomainError, match="data must have no missing values"):
                fp.assess(value, mechanism="rr", level=[1.0], epsilon=[1.0])
    try:
        import polars
    except ImportError:
        return
    with pytest.raises(DomainError, match="x must have no missing values"):
        array("x", polars.Series([1, None]))


@pytest.mark.parametrize("value", [
    [1 + 0j, 2], np.array(["2020", "2021"], dtype="M8[Y]"), np.array([1, 2], dtype="m8[s]"), ["1", "2"],
    np.zeros(2, dtype="i4,f4"), np.array([b"1", b"2"]), np.array([1, "2"], dtype=object), [1, [2, 3]],
    np.array([np.timedelta64(1, "s"), 1], dtype=object), np.array([np.complex128(1), 1], dtype=object), [{}, {}],
    np.array([np.datetime64("2020"), 1], dtype=object), np.array([bytearray(b"1"), 1], dtype=object),
])  # fmt: skip
def test_what_is_no_number_is_not_made_one(value):
    with pytest.raises(DomainError, match="x must be a real number; got"):
        real("x", value)
    with pytest.raises(ValueError, match="x must be (integers from|an array with rows of one length; got)"):
        integers("x", value)


def test_ufuncs_keep_the_mask():
    hidden = np.ma.array([0.25, 0.5, 0.75], mask=[0, 1, 0])
    for name in fp.special.__all__:
        function = getattr(fp.special, name)
        if function.signature is not None:
            continue
        with np.errstate(all="ignore"):
            answer = function(*[hidden] * function.nin)
        for one in answer if isinstance(answer, tuple) else (answer,):
            assert np.ma.getmaskarray(one).tolist() == [False, True, False], name
    with pytest.raises(ValueError):
        fp.special.log_sum_exp(hidden)


@pytest.mark.parametrize(
    "value", [1.5, [0.5, 1.0], [0, 2.5], [np.nan], [np.inf], [True], ["1"], [-1], [9], [1j], [2.0**60]]
)
def test_indices_are_whole_and_in_range(value):
    calls = {
        "x": lambda: integers("x", value, 0, 5), "secrets": lambda: Channel(np.eye(6)).sample(value),
        "indices": lambda: fp.DefaultLikelihood(6, -1.0, value, [0.0]),
        "indices ": lambda: fp.DefaultLikelihood(2**200, -1.0, value if value != [9] else [-9], [0.0]),
        "subset": lambda: fp.rank_of_subset(np.atleast_1d(np.array(value)), 6),
        "rank": lambda: fp.subset_of_rank(value, 6, 1), "secret": lambda: notions.abp(None, np.eye(6), secret=value),
        "post": lambda: Channel(np.eye(6)).then(np.resize(np.array(value), 6)) if value not in ([9], [2.0**60]) else
        integers("x", 9, 0, 5),
    }  # fmt: skip
    for name, call in calls.items():
        with pytest.raises(DomainError, match=" must be .*; got") as caught:
            call()
        text = str(caught.value)
        assert name.strip() in text.partition(" must")[0] or text.startswith("x must"), text


def test_whole_floats_are_indices():
    assert integers("x", [0.0, 3.0], 0, 5).tolist() == [0, 3]
    assert integers("x", [2.0, 2**70], 0, 2**80).tolist() == [2, 2**70]
    assert integers("x", [], 0, 5).dtype == np.int64
    assert integers("x", np.array([2**63], dtype=np.uint64), 0, 2**80).tolist() == [2**63]
    assert integers("x", np.array([3], dtype=np.uint8), 0, 2**80).tolist() == [3]
    with pytest.raises(DomainError, match="x must be integers from 0 to 9223372036854775807; got 9223372036854775808"):
        integers("x", np.array([2**63], dtype=np.uint64))
    with pytest.raises(DomainError, match=r"got 0.5 at index \(1, 0\) \(1 of 4 entries\). Pass whole numbers, rounded"):
        integers("x", [[0, 1], [0.5, 3]])
    found, meant = (fp.DefaultLikelihood(1000, -1.0, x, [0.0, -2.0]) for x in ([1.0, 5.0], [1, 5]))
    assert found == meant
