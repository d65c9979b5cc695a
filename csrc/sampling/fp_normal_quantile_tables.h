/* The normal quantile in pieces: written by fit_normal.py, read by fp_normal_quantile.h. */
/* bounds: proved by proofs/tables - the normal quantile on halves of octaves, to 5.6e-15 of it; the tail of w
 * below 2^-8, to 1.1e-15 */
#ifndef FP_NORMAL_QUANTILE_TABLES_H
#define FP_NORMAL_QUANTILE_TABLES_H

#define FP_NORMAL_TERMS 13
#define FP_TAIL_TERMS 18
#define FP_TAIL_START 0x1p-8
#define FP_TAIL_MIDDLE 0x1.2d80000000000p-2

/* [term][piece], piece = bits 51 to 54 of w; cut 5.4e-15 */
static const double fp_normal_pieces[13][16] __attribute__((aligned(64))) = {
    {
        0x1.4e0431cffaf21p+1, 0x1.3ffe5bb73a443p+1, 0x1.30dd3cbf8ef8bp+1, 0x1.2261ba9de9daap+1,
        0x1.12de5e5207be6p+1, 0x1.0429116de072cp+1, 0x1.e934f866e0a97p+0, 0x1.cc31122d3f4adp+0,
        0x1.ae2b8f3437076p+0, 0x1.930007bf676dbp+0, 0x1.7815679a7c2b4p+0, 0x1.615bb10e47f0dp+0,
        0x1.4dabde7773348p+0, 0x1.422c1aadb2493p+0, 0x1.6a0b7e9119485p+1, 0x1.5c96b5fbe7881p+1,
    },
    {
        -0x1.083df5305e959p-2, -0x1.8079e69a314dep-3, -0x1.11ae8db2fd436p-2, -0x1.8bd63db0a8716p-3,
        -0x1.175ed04a14deap-2, -0x1.8fc6b111679f9p-3, -0x1.15fdf27d0757dp-2, -0x1.868a2d6215370p-3,
        -0x1.088c0befc54b4p-2, -0x1.670e53f019a2cp-3, -0x1.cc5881f9ef3fcp-3, -0x1.1db534631c935p-3,
        -0x1.2972a8180651ep-3, -0x1.55db83579de5cp-5, -0x1.fa6ca08b6b3bfp-3, -0x1.7185cad304422p-3,
    },
    {
        0x1.8e843aeb1f9bdp-4, 0x1.a0dfa38b2f614p-5, 0x1.a366ec2b1cd5dp-4, 0x1.b67d623ccdc06p-5,
        0x1.b87aceb401096p-4, 0x1.cb58c1d607898p-5, 0x1.cb87f9a904dcap-4, 0x1.dcb1e35705fa2p-5,
        0x1.d9b462195ceb2p-4, 0x1.e86ced9b4ec9fp-5, 0x1.e466f6e83f04dp-4, 0x1.fa50d7235fe88p-5,
        0x1.0cf8acfa5f917p-3, 0x1.61c74eac06ea1p-4, 0x1.7afb358b7b446p-4, 0x1.8c2e040d12eb2p-5,
    },
    {
        -0x1.997135c8deae3p-5, -0x1.31e314ab0ce66p-6, -0x1.af01e4b0478cap-5, -0x1.4235964c9c92bp-6,
        -0x1.c60cb7c91f4fep-5, -0x1.533108ac781c5p-6, -0x1.dd0c6f1c2066ap-5, -0x1.632d8856a45b2p-6,
        -0x1.f0abf5bf5d032p-5, -0x1.6eb562e970d30p-6, -0x1.f9816e116b1f4p-5, -0x1.6b827e0b0b556p-6,
        -0x1.cc35000725389p-5, -0x1.85aff2159fe3bp-7, -0x1.85e062a292cd7p-5, -0x1.22e679dd98f0bp-6,
    },
    {
        0x1.df71835d43a45p-6, 0x1.ff6cb90cc23e0p-8, 0x1.f84080edb9d17p-6, 0x1.0d3e3e9f4e1bdp-7,
        0x1.09ae3105676a1p-5, 0x1.1bc7e2f4ad280p-7, 0x1.17dc308fcf9cbp-5, 0x1.2a7006a840dd9p-7,
        0x1.255be723653bdp-5, 0x1.37546bb78e6ddp-7, 0x1.2fefaec382275p-5, 0x1.40cafc495f2a3p-7,
        0x1.3f67f6b6d7381p-5, 0x1.af88e90013428p-7, 0x1.c928688db1e0fp-6, 0x1.e6f2a5c372710p-8,
    },
    {
        -0x1.2d68ba46ed7f1p-6, -0x1.cb148d98d152bp-9, -0x1.3cb58a571dfd6p-6, -0x1.e304c48b9edc6p-9,
        -0x1.4d9ad8f4338acp-6, -0x1.fd24576db9fb5p-9, -0x1.5fb10034c8332p-6, -0x1.0c2dfa2e827edp-8,
        -0x1.71bff9fe36bd9p-6, -0x1.18f9357b933c1p-8, -0x1.8115a308b084ep-6, -0x1.21e4bdbca023bp-8,
        -0x1.81ff0ef351693p-6, -0x1.a3949313e06f8p-9, -0x1.1fb87cc7f05efp-6, -0x1.b592883b6558ap-9,
    },
    {
        0x1.8c4eec4a42d2ap-7, 0x1.aef9ad531dd11p-10, 0x1.a01376193a5a0p-7, 0x1.c51d48405599ep-10,
        0x1.b608287adc03bp-7, 0x1.dd7d4a904f57bp-10, 0x1.cdda82957e2b7p-7, 0x1.f7631d73c1094p-10,
        0x1.e6569e5865315p-7, 0x1.086670e0d317fp-9, 0x1.fcaa8691e16a3p-7, 0x1.12e7d87fc1eeap-9,
        0x1.0813ec97bc27ap-6, 0x1.55220aa603d5dp-9, 0x1.7aa7d77b8feecp-7, 0x1.9b26f5733470ap-10,
    },
    {
        -0x1.0cb2d85979528p-7, -0x1.a13f2227fc408p-11, -0x1.19e4c258e8a95p-7, -0x1.b661ea509659bp-11,
        -0x1.2899a0219737fp-7, -0x1.cdc8437fbdc1dp-11, -0x1.38b1d27cb949bp-7, -0x1.e6f654b43f7d5p-11,
        -0x1.498db08bcbf9cp-7, -0x1.002e1099dbd06p-10, -0x1.5991146ab6ed5p-7, -0x1.0b34e7795222cp-10,
        -0x1.64233ad01024cp-7, -0x1.c4e26df664d5cp-11, -0x1.00ecf75e40bd1p-7, -0x1.8e5b9c497e7a2p-11,
    },
    {
        0x1.749901f355936p-8, 0x1.9d2121524e6b1p-12, 0x1.86a46fec6065dp-8, 0x1.b1ca459642ff3p-12,
        0x1.9acc6abe7d560p-8, 0x1.c8bf9340366ccp-12, 0x1.b0fcc810d30f1p-8, 0x1.e1ac184837593p-12,
        0x1.c88a609ec04fep-8, 0x1.fb4d8bf6a32adp-12, 0x1.df93de4dc06fbp-8, 0x1.095486e6a73bfp-11,
        0x1.f319f4887153ep-8, 0x1.35c633aea818fp-11, 0x1.6480e445dcd9cp-8, 0x1.8aaf7ecc4794ap-12,
    },
    {
        -0x1.05790b1c8c215p-8, -0x1.9f9b191e0615bp-13, -0x1.11fb4ca8003f8p-8, -0x1.b4264cce7e961p-13,
        -0x1.1ff970342acfbp-8, -0x1.cb094950073dbp-13, -0x1.2f7154064dcc9p-8, -0x1.e40ac96883924p-13,
        -0x1.40055a8bdd806p-8, -0x1.fe201025ca171p-13, -0x1.5094e6eb163a6p-8, -0x1.0b51a3b9d95c9p-12,
        -0x1.5e5bc11079694p-8, -0x1.ee852ea20b367p-13, -0x1.f4a251317df0fp-9, -0x1.8d4720eb37216p-13,
    },
    {
        0x1.755f891a8a0dbp-9, 0x1.a82a421e171cdp-14, 0x1.870940009e552p-9, 0x1.bce8ae26363c7p-14,
        0x1.9ad054eb74a1fp-9, 0x1.d40f99228e7c8p-14, 0x1.b0bed8384daf3p-9, 0x1.ed7ab5c22c73fp-14,
        0x1.c86cfefdd7f85p-9, 0x1.042445c5bb4c2p-13, 0x1.e0789a1ba8101p-9, 0x1.110cc9aae5425p-13,
        0x1.f5e6ca8e74ca5p-9, 0x1.322e8411f2b4ep-13, 0x1.659e967ee0df6p-9, 0x1.95aa3216e838cp-14,
    },
    {
        -0x1.2f1b3d8b52a9fp-9, -0x1.cf9c5fdf0ae95p-15, -0x1.3d44ab867a5e4p-9, -0x1.e60a04bb67aeep-15,
        -0x1.4d2330fc6c8fap-9, -0x1.ff1b7c4793a0ap-15, -0x1.5ec8a5540d5c0p-9, -0x1.0d5ee1629f227p-14,
        -0x1.71f7a441f321ep-9, -0x1.1c13bb1e7c9d1p-14, -0x1.85beb739c62eap-9, -0x1.2a895a1f5cae8p-14,
        -0x1.97c4e0e70aadcp-9, -0x1.230a9b55f1c83p-14, -0x1.2278e9208e62dp-9, -0x1.bb9c809a4f6edp-15,
    },
    {
        0x1.be7e5f337945ap-10, 0x1.e5443ae114804p-16, 0x1.d328fa6c8861dp-10, 0x1.fc87c0cac3accp-16,
        0x1.ea53eaa79ab9bp-10, 0x1.0b47686dd5fd8p-15, 0x1.02116af148723p-9, 0x1.19aaa994f2584p-15,
        0x1.1029031364869p-9, 0x1.2915e9602377fp-15, 0x1.1ed65fb2708ddp-9, 0x1.387a293bb4fedp-15,
        0x1.2c98efc1678ffp-9, 0x1.553fc51daed74p-15, 0x1.ac0d518700801p-10, 0x1.d085c126b274dp-16,
    },
};

/* cut 1.8e-16 */
static const double fp_normal_tail[18] = {
    0x1.4d4eaf6a48f3fp+0, -0x1.1f7ba26643d77p-1, -0x1.2286fef804543p-2, 0x1.69036567e4166p-1,
    -0x1.8085e13e45a00p-1, 0x1.b0ad4678b1c8bp-1, -0x1.6ecd5996ba04ap+0, 0x1.7e9b2367529abp+1,
    -0x1.a30215f6a62bep+2, 0x1.dc47ee7f282c5p+3, -0x1.19a014fe494adp+5, 0x1.5a360ee91a743p+6,
    -0x1.c74f4fb77c4d7p+7, 0x1.2c8acd6b41556p+9, -0x1.20d3db164d60ap+10, 0x1.6a87bfce10791p+11,
    -0x1.58791b45cc734p+14, 0x1.fb2dd71a04f92p+15,
};

#endif
