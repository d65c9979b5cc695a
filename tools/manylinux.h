/* Included before every source of a wheel that is released (tools/release): the wheel then runs with glibc 2.28 of 2018
 * and later, wherever it is built.  A newer glibc has two versions of these functions, and a program takes the newer one
 * when it is linked.  The older versions call the same code, and set errno besides; glibc 2.28 is the first whose exp,
 * exp2, log, log2 and pow are those of today, and a runner of 2.38 or later has a newer fmod. */
__asm__(".symver exp, exp@GLIBC_2.2.5");
__asm__(".symver exp2, exp2@GLIBC_2.2.5");
__asm__(".symver log, log@GLIBC_2.2.5");
__asm__(".symver log2, log2@GLIBC_2.2.5");
__asm__(".symver pow, pow@GLIBC_2.2.5");
__asm__(".symver fmod, fmod@GLIBC_2.2.5");
__asm__(".symver hypot, hypot@GLIBC_2.2.5");
