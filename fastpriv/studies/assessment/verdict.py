"""The verdict of an assessment: the target, the choice among the rows of the grid, and what it means for a person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...base.numerics import next_above, rounded_up
from ...composition import RiskStatement, statement


def value_risk(report: Any, record: str, prior: float) -> RiskStatement:
    """The risk of a value, or of a record in a statistic with a share of members that is ``prior``, at the row of the
    grid that meets the last of the targets with the least noise.
    """
    row, texts, setting = 0, [], f"through {report.noise}" if not report.parameter else ""
    if report.parameter:
        need, noisy = report.requirements[-1], report.parameter == "sigma"
        privacy = report.grid if noisy else -report.grid
        enough = [i for i in range(len(privacy)) if privacy[i] >= (need.setting if noisy else -need.setting)]
        row = min(enough, key=privacy.__getitem__) if enough else int(privacy.argmax())
        setting = f"with {report.parameter} = {report.grid[row]:.6g}"
        why = "least private of the grid that meets it" if enough else "most private of the grid, and does NOT meet it"
        texts.append(f"Target: {need.target}. Choice: {setting[5:]}, the {why}.")
    if report.statistic is not None:
        statistic = report.statistic
        said = statement(statistic.mechanism(report.mechanism, float(report.grid[row])), prior=prior, record=record)
        width = rounded_up(float(report["noise_half_width"].upper[row]))
        answer = "each count" if statistic.name == "histogram" else f"the {statistic.name}"
        texts += [f"In 95 of 100 releases the noise moves {answer} by at most {width}.", *said.sentences[:3:2]]
        private = f"The {statistic.name} without noise is private: nothing here is computed from it."
        assumptions = (*said.assumed, private)
        return replace(said, sentences=tuple(texts), assumed=assumptions, from_data=statistic.from_data)
    guess, information = report["bayes_vulnerability"][row], report["mutual_information"].to("bits")[row]
    times = rounded_up(min(100.0, float(next_above(100.0 * guess.upper))))
    before = f"{100.0 * float(report.prior.probabilities.max()):.3g}"
    value = "value" if record == "record" else f"value of a {record}"
    texts += [
        f"{setting[0].upper()}{setting[1:]}, somebody who knows everything but one {value} guesses it right at most "
        f"{times} times in 100 ({before} without the release).",
        f"On average one release tells at most {rounded_up(float(information.upper))} bits about the value, of "
        f"{report.secret.entropy_bits:.3g}.",
    ]
    from_data = []
    if report.sensitivity_source == "data":
        span = rounded_up(report.sensitivity, 6)
        from_data.append(f"The range of the values, {span}, is computed from the private data.")
    if report.records:
        from_data.append("Guesses and information take people to follow the distribution of the values in these data.")
    assumed = "Each value is released once, by the mechanism as it is described, with noise of its own."
    return RiskStatement(tuple(texts), (assumed,), tuple(from_data), guess=guess, information=information)
