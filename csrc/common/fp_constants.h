/* Numbers that every subject uses, each written once. */
#ifndef FP_CONSTANTS_H
#define FP_CONSTANTS_H

#define FP_PI 3.14159265358979323846
#define FP_LOG_SQRT_2PI 0.91893853320467274178 /* log(2 pi) / 2 */
/* bound: proved - half the distance from 1 to the next double: the relative error of one rounding to nearest */
#define FP_U 0x1p-53

#endif
