#pragma once

/// Elementary functions of f64. They use only addition, subtraction, multiplication, division and
/// exact functions such as ldexp. Their results therefore have the same bits on every processor,
/// while the functions of two C libraries may differ in the last bit. All numbers on which the bits
/// of a training depend are computed with them: initial values, learning rates, positions. Vectors
/// of f32 use core/cpu/math.h instead.
///
/// The relative error is at most 2 units in the last place, except where it is stated.
namespace longhand::elementary {

double exp(double x);
double expm1(double x);  // e^x - 1, with an error of at most 5 units in the last place
double log(double x);
double power(double base, double exponent);  // for base > 0; the error grows with |ln result|
double erfc(double x);  // 1 - erf(x), with an error of at most 200 units in the last place
/// The absolute error of the sine and cosine is at most 2^-52 if |x| < 2^31, and 2^-50 for larger x
/// up to the largest f32.
double sin(double x);
double cos(double x);

}  // namespace longhand::elementary
