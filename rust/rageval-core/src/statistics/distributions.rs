//! The normal and Student's t distribution, to about 14 digits.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// `P(Z <= x)` for a standard normal `Z`.
pub(crate) fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// The `x` with `normal_cdf(x) == probability`, for `0 < probability < 1`.
///
/// M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied
/// Statistics 37 (1988), routine PPND16.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    let centred = probability - 0.5;
    if centred.abs() <= 0.425 {
        let r = 0.180_625 - centred * centred;
        return centred * ratio(r, &CENTRE);
    }
    let tail = if centred < 0.0 {
        probability
    } else {
        1.0 - probability
    };
    let r = (-tail.ln()).sqrt();
    let magnitude = if r <= 5.0 {
        ratio(r - 1.6, &MIDDLE)
    } else {
        ratio(r - 5.0, &FAR)
    };
    magnitude.copysign(centred)
}

/// Numerator and denominator coefficients, constant term first.
type Rational = [[f64; 8]; 2];

fn ratio(x: f64, [numerator, denominator]: &Rational) -> f64 {
    let polynomial = |terms: &[f64; 8]| terms.iter().rev().fold(0.0, |sum, term| sum * x + term);
    polynomial(numerator) / polynomial(denominator)
}

const CENTRE: Rational = [
    [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_659_7e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_854e3,
    ],
];

const MIDDLE: Rational = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];

const FAR: Rational = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

/// `P(|T| >= |t|)` for Student's `T` with `df > 0` degrees of freedom.
///
/// It is the regularised incomplete beta function `I_x(df / 2, 1 / 2)` at `x = df / (df + t^2)`
/// (NIST Digital Library of Mathematical Functions, 8.17).
pub fn student_two_sided(t: f64, df: f64) -> f64 {
    let (a, ratio) = (df / 2.0, t * t / df);
    if ratio == 0.0 {
        return 1.0;
    }
    if ratio.is_infinite() {
        return 0.0;
    }
    let (x, complement) = (1.0 / (1.0 + ratio), ratio / (1.0 + ratio));
    let log_power = -a * ratio.ln_1p() + 0.5 * complement.ln() + log_beta_half_inverse(a);
    if x < (a + 1.0) / (a + 2.5) {
        log_power.exp() / a * beta_continued_fraction(a, 0.5, x)
    } else {
        1.0 - 2.0 * log_power.exp() * beta_continued_fraction(0.5, a, complement)
    }
}

/// The `t > 0` with `student_two_sided(t, df) == probability`, for `0 < probability < 1`.
pub fn student_two_sided_quantile(probability: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_two_sided(high, df) > probability && high < f64::MAX / 4.0 {
        low = high;
        high *= 2.0;
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if student_two_sided(middle, df) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// `-ln B(a, 1/2)`. For large `a` the difference of log-gammas loses digits; its asymptotic series does not.
fn log_beta_half_inverse(a: f64) -> f64 {
    let log_gamma_ratio = if a < 20.0 {
        libm::lgamma(a + 0.5) - libm::lgamma(a)
    } else {
        let square = a * a;
        let series = 1.0 / 192.0 - (1.0 / 640.0 - 17.0 / (14_336.0 * square)) / square;
        0.5 * a.ln() + (series / square - 1.0 / 8.0) / a
    };
    log_gamma_ratio - 0.5 * PI.ln()
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), by the modified Lentz
/// method; it converges quickly for `x < (a + 1) / (a + b + 2)`.
fn beta_continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const MOST_TERMS: usize = 100_000;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..MOST_TERMS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            factor = c * d;
            fraction *= factor;
        }
        if (factor - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(have: f64, want: f64, tolerance: f64) {
        assert!(
            (have - want).abs() <= tolerance * want.abs(),
            "{have} is not {want}"
        );
    }

    #[test]
    fn normal_quantiles_match_published_values() {
        close(normal_quantile(0.975), 1.959_963_984_540_054, 1e-15);
        close(normal_quantile(0.25), -0.674_489_750_196_081_7, 1e-15);
        close(normal_quantile(0.001), -3.090_232_306_167_813_5, 1e-15);
        close(normal_quantile(1e-20), -9.262_340_089_798_408, 1e-15);
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    #[test]
    fn normal_cdf_undoes_the_quantile() {
        for probability in [1e-300, 1e-12, 0.01, 0.3, 0.5, 0.8, 0.999] {
            close(normal_cdf(normal_quantile(probability)), probability, 1e-12);
        }
    }

    /// Closed forms: with 1 degree of freedom `1 - 2/pi * atan(t)`, with 2 `1 - t / sqrt(2 + t^2)`.
    #[test]
    fn student_matches_closed_forms() {
        for t in [0.01_f64, 0.5, 1.0, 3.0, 40.0] {
            let cauchy = 2.0 / PI * (1.0 / t).atan();
            close(student_two_sided(t, 1.0), cauchy, 1e-13);
            let root = (2.0 + t * t).sqrt();
            close(student_two_sided(t, 2.0), 2.0 / (root * (root + t)), 1e-13);
        }
    }

    #[test]
    fn student_tends_to_the_normal() {
        close(student_two_sided(1.96, 1e9), 2.0 * normal_cdf(-1.96), 1e-8);
        assert_eq!(student_two_sided(0.0, 5.0), 1.0);
        assert_eq!(student_two_sided(f64::INFINITY, 5.0), 0.0);
    }

    #[test]
    fn student_quantiles_match_tables() {
        close(
            student_two_sided_quantile(0.05, 9.0),
            2.262_157_162_798_205,
            1e-13,
        );
        close(
            student_two_sided_quantile(0.01, 1.0),
            63.656_741_162_871_526,
            1e-12,
        );
        close(
            student_two_sided_quantile(0.05, 249.0),
            1.969_536_867_640_350_4,
            1e-13,
        );
    }
}
