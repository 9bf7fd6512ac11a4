//! The sign of a weighted sum of gamma variables.

/// The step of the trapezoidal rule, on the scale of the inverse hyperbolic sine of the distance from the saddle point.
const STEP: f64 = 0.12;
/// The most points of the integral. The last lies `sinh(STEP * POINTS)`, about 7e7, widths from the saddle point.
const POINTS: usize = 156;
/// How far the path of the integral leans at most: a path that leans further would leave the region of small values.
const MOST_SLOPE: f64 = 0.4;
/// A point of the integral that adds less than this share is the last.
const NEGLIGIBLE: f64 = 1e-15;
/// A product is scaled once it is larger than this, or smaller than its inverse.
const LARGE: f64 = 1e100;
/// How many factors are multiplied before the product is scaled. None is larger than 1e9.
const TOGETHER: usize = 8;
/// The most steps towards the saddle point, and the relative step at which they stop: the path may miss it by a little.
const MOST_SADDLE_STEPS: usize = 60;
const NEAR_SADDLE: f64 = 1e-6;

/// `P(sum(a * g) > 0)` for gamma variables `g`, where the mean of the sum is not above 0.
pub(crate) fn tail_above(apart: &[f64], counts: &[f64]) -> f64 {
    let largest = apart.iter().fold(f64::NEG_INFINITY, |most, &a| most.max(a));
    if largest <= 0.0 {
        return f64::MIN_POSITIVE;
    }
    let saddle = find_saddle(apart, counts, largest);
    let ratios: Vec<f64> = apart.iter().map(|a| a / (1.0 - a * saddle)).collect();
    let moment = |power: i32| -> f64 {
        (ratios.iter().zip(counts))
            .map(|(ratio, count)| count * ratio.powi(power))
            .sum()
    };
    let second = moment(2) + saddle.powi(-2);
    let third = 2.0 * (moment(3) - saddle.powi(-3));
    let (width, bend) = (1.0 / second.sqrt(), third / (6.0 * second));
    let (slope, radius) = (
        MOST_SLOPE.copysign(bend),
        MOST_SLOPE / (2.0 * bend.abs() + f64::MIN_POSITIVE),
    );
    let factors = Factors::new(&ratios, counts);
    let mut integral = 0.0;
    for point in 0..POINTS {
        let place = STEP * point as f64;
        let across = width * libm::sinh(place);
        let along = STEP * width * libm::cosh(place) * if point == 0 { 0.5 } else { 1.0 };
        // From the saddle point to s; the direction of the path there, divided by i, is 1 - i * lean.
        let root = libm::hypot(radius, across);
        let shift = (slope * across * (across / (root + radius)), across);
        let lean = slope * across / root;
        let (size, angle) = factors.divide(shift, saddle);
        integral += along * size * (libm::cos(angle) - lean * libm::sin(angle));
        if along * size <= NEGLIGIBLE * integral.abs() {
            break;
        }
    }
    let logarithm: f64 = (apart.iter().zip(counts))
        .map(|(a, count)| -count * libm::log1p(-a * saddle))
        .sum();
    let found = integral / (std::f64::consts::PI * saddle) * libm::exp(logarithm);
    found.clamp(f64::MIN_POSITIVE, 1.0)
}

/// About where `sum(-count * ln(1 - a * s)) - ln(s)` is smallest, for `0 < s < 1 / largest`, by Newton's method.
fn find_saddle(apart: &[f64], counts: &[f64], largest: f64) -> f64 {
    let squares: f64 = apart
        .iter()
        .zip(counts)
        .map(|(a, count)| count * a * a)
        .sum();
    let (mut low, mut high) = (0.0, 1.0 / largest);
    let mut place = (1.0 / squares.sqrt()).min(0.5 * high);
    for _ in 0..MOST_SADDLE_STEPS {
        let (mut slope, mut bend) = (-1.0 / place, place.powi(-2));
        for (a, count) in apart.iter().zip(counts) {
            let ratio = a / (1.0 - a * place);
            slope += count * ratio;
            bend += count * ratio * ratio;
        }
        if slope < 0.0 {
            low = place;
        } else {
            high = place;
        }
        let newton = place - slope / bend;
        let next = if newton > low && newton < high {
            newton
        } else {
            0.5 * (low + high)
        };
        let step = (next - place).abs();
        place = next;
        if step <= NEAR_SADDLE * place {
            break;
        }
    }
    place
}

/// The factors of the integrand's denominator: those with the exponent 1, and the others with theirs.
struct Factors {
    single: Vec<f64>,
    repeated: Vec<(f64, f64)>,
}

impl Factors {
    fn new(ratios: &[f64], counts: &[f64]) -> Self {
        let pairs = || ratios.iter().copied().zip(counts.iter().copied());
        Self {
            single: pairs()
                .filter(|pair| pair.1 == 1.0)
                .map(|pair| pair.0)
                .collect(),
            repeated: pairs().filter(|pair| pair.1 != 1.0).collect(),
        }
    }

    /// The size of `1 / ((1 + shift / saddle) * prod((1 - ratio * shift)^count))`, and minus its angle.
    fn divide(&self, shift: Complex, saddle: f64) -> (f64, f64) {
        let mut product = (1.0 + shift.0 / saddle, shift.1 / saddle);
        let (mut logarithm, mut angle) = (0.0, 0.0);
        for together in self.single.chunks(TOGETHER) {
            for ratio in together {
                product = multiply(product, (1.0 - ratio * shift.0, -ratio * shift.1));
            }
            let size = product.0.abs() + product.1.abs();
            if !(size < LARGE && size > 1.0 / LARGE) {
                logarithm += libm::log(size);
                product = (product.0 / size, product.1 / size);
            }
        }
        for &(ratio, count) in &self.repeated {
            let (size, turn) = in_polar_form((1.0 - ratio * shift.0, -ratio * shift.1));
            logarithm += count * size;
            angle += count * turn;
        }
        let (size, turn) = in_polar_form(product);
        (libm::exp(-(logarithm + size)), angle + turn)
    }
}

type Complex = (f64, f64);

fn multiply(one: Complex, other: Complex) -> Complex {
    (
        one.0 * other.0 - one.1 * other.1,
        one.0 * other.1 + one.1 * other.0,
    )
}

/// The logarithm of the size, and the angle.
fn in_polar_form(number: Complex) -> (f64, f64) {
    (
        libm::log(libm::hypot(number.0, number.1)),
        libm::atan2(number.1, number.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For `a` and `-b` with one variable each, the probability is `a / (a + b)`.
    #[test]
    fn two_exponential_variables_worked_by_hand() {
        for (a, b) in [(1.0, 1.0), (0.5, 1.0), (1e-9, 1.0), (0.3, 0.9)] {
            let found = tail_above(&[a, -b], &[1.0, 1.0]);
            assert!(
                (found / (a / (a + b)) - 1.0).abs() < 1e-11,
                "{a} and {b} give {found}"
            );
        }
    }

    /// `P(a * g > b * h)` for `g` with `k` exponential steps: `1 - (b / (a + b))^k`.
    #[test]
    fn several_steps_against_one_worked_by_hand() {
        for count in [2.0, 3.0, 40.0, 5000.0] {
            let a = 0.5 / count;
            let found = tail_above(&[a, -1.0], &[count, 1.0]);
            let expected = 1.0 - (1.0 / (1.0 + a)).powf(count);
            assert!(
                (found / expected - 1.0).abs() < 1e-9,
                "{count} give {found}, not {expected}"
            );
        }
    }

    #[test]
    fn without_a_number_above_0_there_is_nothing() {
        assert!(tail_above(&[-1.0, 0.0], &[1.0, 1.0]) <= f64::MIN_POSITIVE);
    }
}
