/* Nodes and weights of the Gauss-Legendre rules on [-1, 1] with 8, 16, 24 and 32 points, correctly rounded;
 * a tail is what rounding took from its node. */
/* bounds: proved by proofs/tables - a node with its tail to 1.3e-32 of itself, a weight to 1.2e-16 of itself */
#ifndef FP_GAUSS_LEGENDRE_TABLES_H
#define FP_GAUSS_LEGENDRE_TABLES_H

static const double fp_legendre_nodes_8[8] = {
    0x1.ebab1cb0acc67p-1, 0x1.97e4ab249f41ep-1, 0x1.0d129583284b4p-1, 0x1.77ac94f3c7345p-3,
    -0x1.77ac94f3c7345p-3, -0x1.0d129583284b4p-1, -0x1.97e4ab249f41ep-1, -0x1.ebab1cb0acc67p-1,
};
static const double fp_legendre_tails_8[8] = {
    -0x1.ffca884691608p-55, 0x1.ace9d1bf616efp-57, -0x1.70ed957741527p-58, -0x1.ab7ccf07e9ddfp-59,
    0x1.ab7ccf07e9ddfp-59, 0x1.70ed957741527p-58, -0x1.ace9d1bf616efp-57, 0x1.ffca884691608p-55,
};
static const double fp_legendre_weights_8[8] = {
    0x1.9ea1d04ca0374p-4, 0x1.c76fb531d2b96p-3, 0x1.413c50a255615p-2, 0x1.736360b199343p-2,
    0x1.736360b199343p-2, 0x1.413c50a255615p-2, 0x1.c76fb531d2b96p-3, 0x1.9ea1d04ca0374p-4,
};
static const double fp_legendre_nodes_16[16] = {
    0x1.fa92c264d787ep-1, 0x1.e39f56616f9b0p-1, 0x1.bb3403514e483p-1, 0x1.82c45dda4726bp-1,
    0x1.3c5a466d5e8b8p-1, 0x1.d50259a43a772p-2, 0x1.205cae642337cp-2, 0x1.852bd6676a9f9p-4,
    -0x1.852bd6676a9f9p-4, -0x1.205cae642337cp-2, -0x1.d50259a43a772p-2, -0x1.3c5a466d5e8b8p-1,
    -0x1.82c45dda4726bp-1, -0x1.bb3403514e483p-1, -0x1.e39f56616f9b0p-1, -0x1.fa92c264d787ep-1,
};
static const double fp_legendre_tails_16[16] = {
    -0x1.b4621b51e4ad4p-58, -0x1.be3a5df4a4bf4p-56, -0x1.a1798e8d75402p-57, 0x1.450aa9531389dp-55,
    -0x1.981b60ef3d7a3p-56, 0x1.335dfa9e7f1dbp-56, -0x1.440df7c52dbd9p-59, -0x1.82c17214e46f4p-62,
    0x1.82c17214e46f4p-62, 0x1.440df7c52dbd9p-59, -0x1.335dfa9e7f1dbp-56, 0x1.981b60ef3d7a3p-56,
    -0x1.450aa9531389dp-55, 0x1.a1798e8d75402p-57, 0x1.be3a5df4a4bf4p-56, 0x1.b4621b51e4ad4p-58,
};
static const double fp_legendre_weights_16[16] = {
    0x1.bcddab4b7c211p-6, 0x1.fdfb1a2c1265dp-5, 0x1.85c4ee79cc258p-4, 0x1.fe7af2bad386ap-4,
    0x1.325f61bca3cbfp-3, 0x1.5a6ebbb5a75fcp-3, 0x1.75f8c77e0c00fp-3, 0x1.83feae80e4dfcp-3,
    0x1.83feae80e4dfcp-3, 0x1.75f8c77e0c00fp-3, 0x1.5a6ebbb5a75fcp-3, 0x1.325f61bca3cbfp-3,
    0x1.fe7af2bad386ap-4, 0x1.85c4ee79cc258p-4, 0x1.fdfb1a2c1265dp-5, 0x1.bcddab4b7c211p-6,
};
static const double fp_legendre_nodes_24[24] = {
    0x1.fd892de691982p-1, 0x1.f30f9f0cbf876p-1, 0x1.e06585a70aa4dp-1, 0x1.c5d841864d0f5p-1,
    0x1.a3d74ce0d3700p-1, 0x1.7af18edb9ddd6p-1, 0x1.4bd2ee5fa1086p-1, 0x1.17417bac4d72bp-1,
    0x1.bc345d81e24b5p-2, 0x1.429a8c588e910p-2, 0x1.8769542b94f8dp-3, 0x1.0660853eda2e8p-4,
    -0x1.0660853eda2e8p-4, -0x1.8769542b94f8dp-3, -0x1.429a8c588e910p-2, -0x1.bc345d81e24b5p-2,
    -0x1.17417bac4d72bp-1, -0x1.4bd2ee5fa1086p-1, -0x1.7af18edb9ddd6p-1, -0x1.a3d74ce0d3700p-1,
    -0x1.c5d841864d0f5p-1, -0x1.e06585a70aa4dp-1, -0x1.f30f9f0cbf876p-1, -0x1.fd892de691982p-1,
};
static const double fp_legendre_tails_24[24] = {
    0x1.c8dcf41a880b6p-55, 0x1.c1fd96b3b2de6p-56, -0x1.6b234adfd1d8fp-55, -0x1.57ca3c258baa3p-55,
    -0x1.cf7f62cf18ea7p-56, 0x1.d2cb2315de8f9p-58, 0x1.b5b49ba9f6df2p-56, -0x1.f2d21bec5339ap-56,
    0x1.9e53b03a9090bp-57, -0x1.9e340f409acb4p-56, -0x1.be34256678533p-60, -0x1.1f54a92ef73f6p-58,
    0x1.1f54a92ef73f6p-58, 0x1.be34256678533p-60, 0x1.9e340f409acb4p-56, -0x1.9e53b03a9090bp-57,
    0x1.f2d21bec5339ap-56, -0x1.b5b49ba9f6df2p-56, -0x1.d2cb2315de8f9p-58, 0x1.cf7f62cf18ea7p-56,
    0x1.57ca3c258baa3p-55, 0x1.6b234adfd1d8fp-55, -0x1.c1fd96b3b2de6p-56, -0x1.c8dcf41a880b6p-55,
};
static const double fp_legendre_weights_24[24] = {
    0x1.9465bd3112202p-7, 0x1.d375514486f1dp-6, 0x1.6ab884f57c979p-5, 0x1.e5c6255d25edap-5,
    0x1.2c6d5c2eff064p-4, 0x1.6108ef504463ap-4, 0x1.8fd8936444b16p-4, 0x1.b8177ba4a68dcp-4,
    0x1.d91c78acb1b2dp-4, 0x1.f25cbce1d1ff6p-4, 0x1.01b7117cf8bd8p-3, 0x1.060475e763736p-3,
    0x1.060475e763736p-3, 0x1.01b7117cf8bd8p-3, 0x1.f25cbce1d1ff6p-4, 0x1.d91c78acb1b2dp-4,
    0x1.b8177ba4a68dcp-4, 0x1.8fd8936444b16p-4, 0x1.6108ef504463ap-4, 0x1.2c6d5c2eff064p-4,
    0x1.e5c6255d25edap-5, 0x1.6ab884f57c979p-5, 0x1.d375514486f1dp-6, 0x1.9465bd3112202p-7,
};
static const double fp_legendre_nodes_32[32] = {
    0x1.fe995e70409b6p-1, 0x1.f8a212714bcdcp-1, 0x1.edf5518053baap-1, 0x1.deac0259f7f42p-1,
    0x1.caea9b4574cb9p-1, 0x1.b2e04fd686a13p-1, 0x1.96c69481c4bc5p-1, 0x1.76e0931d693bap-1,
    0x1.537a89c487f8ap-1, 0x1.2ce9146962ca4p-1, 0x1.038862866b29dp-1, 0x1.af76b57c6f8f1p-2,
    0x1.53d55ce57bdf6p-2, 0x1.ea0f7e19c094bp-3, 0x1.27e0ea717f237p-3, 0x1.8bbc8488cc499p-5,
    -0x1.8bbc8488cc499p-5, -0x1.27e0ea717f237p-3, -0x1.ea0f7e19c094bp-3, -0x1.53d55ce57bdf6p-2,
    -0x1.af76b57c6f8f1p-2, -0x1.038862866b29dp-1, -0x1.2ce9146962ca4p-1, -0x1.537a89c487f8ap-1,
    -0x1.76e0931d693bap-1, -0x1.96c69481c4bc5p-1, -0x1.b2e04fd686a13p-1, -0x1.caea9b4574cb9p-1,
    -0x1.deac0259f7f42p-1, -0x1.edf5518053baap-1, -0x1.f8a212714bcdcp-1, -0x1.fe995e70409b6p-1,
};
static const double fp_legendre_tails_32[32] = {
    -0x1.d33359800e189p-58, -0x1.aaffa0e0c65f9p-55, 0x1.791df7a6a20c5p-55, 0x1.9d38694cbaec4p-56,
    0x1.2e728b83d35dap-55, -0x1.5e7f054d3c6c6p-62, 0x1.8af77c10ec680p-56, -0x1.1d39d12ffe13bp-55,
    -0x1.18dbe4d4e5271p-55, 0x1.c8886bbdcf3dep-56, 0x1.1a50a6a22c158p-55, 0x1.d36770d6ed1bfp-57,
    -0x1.3f8b40a1a6a0dp-56, 0x1.6c06f689a7cc5p-57, 0x1.b3154eb299a0fp-58, -0x1.3f76fc275b341p-60,
    0x1.3f76fc275b341p-60, -0x1.b3154eb299a0fp-58, -0x1.6c06f689a7cc5p-57, 0x1.3f8b40a1a6a0dp-56,
    -0x1.d36770d6ed1bfp-57, -0x1.1a50a6a22c158p-55, -0x1.c8886bbdcf3dep-56, 0x1.18dbe4d4e5271p-55,
    0x1.1d39d12ffe13bp-55, -0x1.8af77c10ec680p-56, 0x1.5e7f054d3c6c6p-62, -0x1.2e728b83d35dap-55,
    -0x1.9d38694cbaec4p-56, -0x1.791df7a6a20c5p-55, 0x1.aaffa0e0c65f9p-55, 0x1.d33359800e189p-58,
};
static const double fp_legendre_weights_32[32] = {
    0x1.cbf8bc743cc5cp-8, 0x1.0aa3c248696c9p-6, 0x1.a0060a8531ffap-6, 0x1.18c5800a355d9p-5,
    0x1.5ee963a335495p-5, 0x1.a1c6ae961fbfap-5, 0x1.e0bd76c924981p-5, 0x1.0d9b9a62cac10p-4,
    0x1.2854103b35e0cp-4, 0x1.40483e126fd14p-4, 0x1.553ee25ebebc6p-4, 0x1.6705e18e13ed1p-4,
    0x1.7572bdb3f6e51p-4, 0x1.8062fc0f6fef9p-4, 0x1.87bc776f8c6d7p-4, 0x1.8b6d9eaec77adp-4,
    0x1.8b6d9eaec77adp-4, 0x1.87bc776f8c6d7p-4, 0x1.8062fc0f6fef9p-4, 0x1.7572bdb3f6e51p-4,
    0x1.6705e18e13ed1p-4, 0x1.553ee25ebebc6p-4, 0x1.40483e126fd14p-4, 0x1.2854103b35e0cp-4,
    0x1.0d9b9a62cac10p-4, 0x1.e0bd76c924981p-5, 0x1.a1c6ae961fbfap-5, 0x1.5ee963a335495p-5,
    0x1.18c5800a355d9p-5, 0x1.a0060a8531ffap-6, 0x1.0aa3c248696c9p-6, 0x1.cbf8bc743cc5cp-8,
};

static const double *const fp_legendre_nodes[4] = {
    fp_legendre_nodes_8, fp_legendre_nodes_16, fp_legendre_nodes_24, fp_legendre_nodes_32,
};
static const double *const fp_legendre_tails[4] = {
    fp_legendre_tails_8, fp_legendre_tails_16, fp_legendre_tails_24, fp_legendre_tails_32,
};
static const double *const fp_legendre_weights[4] = {
    fp_legendre_weights_8, fp_legendre_weights_16, fp_legendre_weights_24, fp_legendre_weights_32,
};

#endif
