//! Eigenvalues of a small symmetric matrix by Jacobi's rotations: a fixed order of operations, no pivoting, full relative accuracy.

/// Sweeps over all pairs; six to ten are needed for 64 rows.
const SWEEPS: usize = 60;

/// Eigenvalues of a symmetric matrix, the largest first, with their vectors of length 1.
pub(super) fn eigen(mut matrix: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let n = matrix.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..n).map(|row| (0..n).map(|column| if row == column { 1.0 } else { 0.0 }).collect()).collect();
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let negligible = 1e-17 * libm::sqrt((matrix[p][p] * matrix[q][q]).abs());
                if matrix[p][q].abs() > negligible {
                    rotate(&mut matrix, &mut vectors, p, q);
                    rotated = true;
                }
            }
        }
        if !rotated {
            break;
        }
    }
    let mut pairs: Vec<(f64, Vec<f64>)> = (0..n).map(|i| matrix[i][i]).zip(vectors).collect();
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    pairs
}

/// One rotation that makes the entry (p, q) zero; rows of `vectors` are eigenvectors.
fn rotate(matrix: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    let theta = 0.5 * (matrix[q][q] - matrix[p][p]) / matrix[p][q];
    let t = if theta >= 0.0 { 1.0 } else { -1.0 } / (theta.abs() + libm::sqrt(theta * theta + 1.0));
    let c = 1.0 / libm::sqrt(t * t + 1.0);
    let s = t * c;
    let off = t * matrix[p][q];
    matrix[p][p] -= off;
    matrix[q][q] += off;
    matrix[p][q] = 0.0;
    matrix[q][p] = 0.0;
    for i in (0..matrix.len()).filter(|&i| i != p && i != q) {
        let (x, y) = (matrix[i][p], matrix[i][q]);
        matrix[i][p] = c * x - s * y;
        matrix[p][i] = matrix[i][p];
        matrix[i][q] = s * x + c * y;
        matrix[q][i] = matrix[i][q];
    }
    let (before, from_q) = vectors.split_at_mut(q);
    for (one, other) in before[p].iter_mut().zip(&mut from_q[0]) {
        (*one, *other) = (c * *one - s * *other, s * *one + c * *other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: the matrix times a vector is the vector times its value; values add up to the trace.
    #[test]
    fn values_belong_to_vectors() {
        let row = |i: u32| (0..9).map(|j: u32| f64::from((i * j) % 7 + (i + j) % 5)).collect::<Vec<f64>>();
        let matrix: Vec<Vec<f64>> = (0..9).map(row).collect();
        let found = eigen(matrix.clone());
        for (value, vector) in &found {
            for (row, x) in matrix.iter().zip(vector) {
                let image: f64 = row.iter().zip(vector).map(|(m, v)| m * v).sum();
                assert!((image - value * x).abs() < 1e-12 * found[0].0, "{image} {value} {x}");
            }
        }
        let trace: f64 = (0..9).map(|i| matrix[i][i]).sum();
        assert!((found.iter().map(|(value, _)| value).sum::<f64>() - trace).abs() < 1e-10);
    }
}
