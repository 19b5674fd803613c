"""The differentiable functions of `jax.numpy`, `jax.scipy` and `jax.nn`."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.stats

sys.path.append(str(pathlib.Path(__file__).parent))

import driver
from known_jax import KNOWN
from spelled import calls_of, left_out_of

NUMPY = {
    "x": "abs absolute fabs sin cos tan sinh cosh tanh arcsinh asinh arctan atan exp exp2 expm1 cbrt "
    "conj conjugate real imag angle deg2rad degrees rad2deg radians negative positive square sinc i0 "
    "nan_to_num copy array asarray flip fliplr flipud ravel transpose matrix_transpose "
    "cumsum cumprod nancumsum nancumprod sum prod mean std var max min amax "
    "amin ptp median nansum nanprod nanmean nanstd nanvar nanmax nanmin nanmedian trace tril triu diag "
    "diagonal sort rot90 squeeze ediff1d diff gradient unwrap atleast_1d atleast_2d atleast_3d corrcoef cov "
    "average reciprocal ceil floor rint round around trunc sign modf fft.fft fft.ifft fft.rfft "
    "fft.ihfft fft.fft2 fft.ifft2 fft.rfft2 fft.fftn fft.ifftn fft.rfftn fft.fftshift fft.ifftshift "
    "linalg.norm linalg.matrix_norm linalg.vector_norm linalg.svdvals linalg.pinv linalg.diagonal "
    "linalg.trace linalg.matrix_transpose linalg.cond unstack",
    "x, axis=1": "sum prod mean std var max min median cumsum cumprod cumulative_sum cumulative_prod sort "
    "nansum ptp average diff flip linalg.norm linalg.vector_norm",
    "x, 0.3": "quantile nanquantile",
    "x, 30.0, axis=0": "percentile nanpercentile",
    "xs": "diagflat vander roots poly trim_zeros polyder polyint",
    "a": "linalg.inv linalg.det linalg.slogdet linalg.eigvals linalg.qr",
    "pos": "linalg.cholesky linalg.eigh linalg.eigvalsh linalg.inv linalg.det",
    "sym": "linalg.eigh linalg.eigvalsh",
    "tall": "linalg.qr linalg.pinv linalg.cond",
    "tall, full_matrices=False": "linalg.svd",
    "a, rhs": "linalg.solve",
    "tall, xs": "linalg.lstsq",
    "a, 3": "linalg.matrix_power",
    "(np.eye(4) + 0.1 * x.T @ y).reshape(2, 2, 4)": "linalg.tensorinv",
    "(np.eye(4) + 0.1 * x.T @ y).reshape(2, 2, 4), x[:2, :2]": "linalg.tensorsolve",
    "x, (1, 0)": "permute_dims",
    "x[:, :1], axis=1": "squeeze",
    "[a, b, rhs]": "linalg.multi_dot",
    "u": "arcsin arccos asin acos arctanh atanh",
    "p": "log log10 log1p log2 sqrt",
    "g": "arccosh acosh",
    "x, y": "add subtract multiply divide true_divide arctan2 atan2 hypot maximum minimum fmax fmin copysign "
    "logaddexp logaddexp2 vdot vecdot kron outer append inner nextafter heaviside tensordot linalg.vecdot "
    "linalg.tensordot cov",
    "x, p": "mod remainder fmod divmod floor_divide",
    "p, x": "power pow float_power",
    "x, 3": "power pow float_power repeat ldexp tile split",
    "x, y.T": "dot matmul linalg.matmul",
    "x, xs": "matvec dot polyval",
    "xs, x.T": "vecmat",
    "xs, ys": "polyadd polysub polymul polydiv convolve correlate linalg.outer outer vdot meshgrid ix_ "
    "broadcast_arrays",
    "xyz, abc": "cross linalg.cross",
    "[x, y]": "concatenate concat stack hstack vstack dstack column_stack block",
    "xs, up, ps": "interp",
    "up, xs, 2": "polyfit",
    "x, -0.5, 1.5": "clip",
    "x, y, z": "clip",
    "mask, x, y": "where",
    "mask, x": "extract",
    "[mask, ~mask], [x, y]": "select",
    "i, [xs[:3], ys[:3], ps[:3]]": "choose",
    "np.array([True, False, True]), x, axis=0": "compress",
    "x, [mask, ~mask], [jnp.sin, jnp.exp]": "piecewise",
    "x, i": "take",
    "x, ii, axis=0": "take_along_axis",
    "x, 1": "delete partition",
    "x, 0, 1": "moveaxis swapaxes rollaxis",
    "x, 1, 9.0": "insert",
    "x, 2": "roll hsplit pad array_split",
    "x, 1, 0": "insert",
    "x, (4, 3)": "reshape resize",
    "xs, (3, 4)": "broadcast_to",
    "x, 0": "expand_dims",
    "cube, 2": "dsplit",
    "rhs.T, 2": "vsplit",
    "x, 1.7, inplace=False": "fill_diagonal",
    "x, ii, y, axis=0, inplace=False": "put_along_axis",
    "x, i, xs[:3], inplace=False": "put",
    "x, mask, ys, inplace=False": "place",
    "x, jnp.float64": "astype",
    "jnp.sum, 1, x": "apply_along_axis",
    "jnp.sum, x, [0]": "apply_over_axes",
    "'ij,kj->ik', x, y": "einsum",
    "x, up": "trapezoid",
    "one, two": "linspace logspace",
    "one, two, 5": "geomspace",
    "c": "abs real imag conj angle exp sin log sqrt square sum prod cumsum fft.fft fft.ifft fft.hfft "
    "fft.irfft "
    "fft.irfft2 fft.irfftn tanh reciprocal std linalg.norm mean sort_complex",
    "c, d": "multiply divide power vdot add",
    "c, d.T": "matmul",
    "ca": "linalg.inv linalg.det",
    "her": "linalg.eigvalsh",  # complex eigenvectors have any phase, as those of `eig`
    "xs, weights=ps": "average",
    "i, weights=xs[:3]": "bincount",
    "xs, weights=ps, bins=3": "histogram",
}
NN = {
    "x": "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid "
    "log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus "
    "sparse_plus sparse_sigmoid squareplus standardize swish tanh",
    "p": "log1mexp",
    "x, axis=0": "logsumexp softmax log_softmax standardize",
    "x, approximate=False": "gelu",
    "x, b=p, axis=1": "logsumexp",
    "cube[:, :, None], cube[:, ::-1, None], 2 * cube[:, :, None]": "dot_product_attention",
}
SPECIAL = {
    "x": "erf erfc erfcx expit log_ndtr log_softmax logsumexp ndtr softmax dawsn expi fresnel i0 i0e i1 i1e "
    "sici",
    "u": "erfinv",
    "t": "logit ndtri entr spence",
    "p": "digamma gamma gammaln loggamma entr exp1 expi spence gammasgn factorial",
    "p, q": "beta betaln gammainc gammaincc kl_div rel_entr poch xlogy xlog1py boxcox boxcox1p",
    "x, p": "xlogy xlog1py",
    "p, x": "boxcox",
    "p, q, t": "betainc",
    "p, q, u": "hyp1f1",
    "g, p": "zeta",
    "1, p": "polygamma",
    "2, p": "expn",
    "g + 1, 2": "multigammaln",
    "p, q, r, u": "hyp2f1",
    "x, y": "owens_t",
    "one, v=3, n_iter=20": "bessel_jn",
}
LINALG = {
    "a": "inv det lu lu_factor expm qr sqrtm schur hessenberg polar svd",
    "pos": "cholesky cho_factor eigh expm",
    "sym": "eigh",
    "tall": "qr polar",
    "tall, full_matrices=False": "svd",
    "a, rhs": "solve",
    "low, rhs, lower=True": "solve_triangular",
    "(low, True), rhs": "cho_solve",
    "a, b": "expm_frechet block_diag",
    "a, b, pos": "solve_sylvester",
    "xs": "toeplitz circulant companion hankel fiedler fiedler_companion block_diag",
    "xs, ys": "toeplitz hankel",
    "xs, 3": "convolution_matrix",
    "xs, ps[:3]": "leslie",
    "xs, ps[:3], eigvals_only=True": "eigh_tridiagonal",
    "a, lambda m: m**2": "funm",
}
OTHERS = {
    "jax.scipy.stats": {
        "x": "sem",
        "x, y, p": " ".join(
            f"{family}.{kind}"
            for family in ("norm", "cauchy", "gumbel_l", "gumbel_r", "laplace", "logistic")
            for kind in ("pdf", "cdf", "logpdf", "logcdf", "sf", "logsf")
        ),
        "t, y, p": "norm.ppf norm.isf cauchy.ppf cauchy.isf gumbel_l.ppf gumbel_r.ppf logistic.ppf "
        "logistic.isf "
        "expon.ppf uniform.ppf",
        "p, 0.1 * t, q": "expon.pdf expon.cdf expon.logpdf expon.logcdf expon.sf expon.logsf",
        "t, p, q": "beta.pdf beta.cdf beta.logpdf beta.logcdf beta.sf beta.logsf",
        "p, q, 0.1 * t, r": "gamma.pdf gamma.cdf gamma.logpdf gamma.logcdf gamma.sf gamma.logsf",
        "p, q": "chi2.pdf chi2.cdf chi2.logpdf chi2.logcdf chi2.sf chi2.logsf gennorm.pdf gennorm.logpdf "
        "gennorm.cdf",
        "g, q": "pareto.pdf pareto.cdf pareto.logpdf pareto.logcdf pareto.sf pareto.logsf",
        "t, q": "pareto.ppf",
        "x, q, y, p": "t.pdf t.logpdf",
        "u, -1.5 - t, 1.5 + t": "truncnorm.pdf truncnorm.cdf truncnorm.logpdf truncnorm.logcdf truncnorm.sf "
        "truncnorm.logsf",
        "t, -0.2 - t, 3 + t": "uniform.pdf uniform.cdf uniform.logpdf",
        "x, p": "vonmises.pdf vonmises.logpdf",
        "p, t": "wrapcauchy.pdf wrapcauchy.logpdf",
        "xs, ys, np.eye(4) + 0.3": "multivariate_normal.pdf multivariate_normal.logpdf",
        "simplex, ps": "dirichlet.pdf dirichlet.logpdf",
        "ii, t": "geom.pmf geom.logpmf",
        "ii, p": "poisson.pmf poisson.logpmf poisson.cdf",
        "p": "poisson.entropy",
        "ii, 4, t": "binom.pmf binom.logpmf nbinom.pmf nbinom.logpmf",
        "ii, 4, p, q": "betabinom.pmf betabinom.logpmf",
        "ii % 2, t": "bernoulli.pmf bernoulli.logpmf bernoulli.cdf",
        "i, 3, simplex[:3] / simplex[:3].sum()": "multinomial.pmf multinomial.logpmf",
    },
    "jax.scipy.signal": {
        "x, y": "convolve correlate fftconvolve convolve2d correlate2d",
        "x, y, mode='same'": "convolve correlate convolve2d",
        "x": "detrend",
        "seq[0, :, 0], nperseg=4": "stft welch",
        "seq[0, :, 0], seq[0, :, 1], nperseg=4": "csd",
        "c, nperseg=4": "istft",
    },
    "jax.scipy.fft": {"x": "dct dctn idct idctn"},
    "jax.scipy.ndimage": {"x, [ps, 0.7 * ps], 1": "map_coordinates"},
    "jax.scipy.integrate": {"x": "trapezoid", "x, up": "trapezoid"},
    "jax.scipy.cluster.vq": {"xyz, abc": "vq"},
    "jax.scipy.sparse.linalg": {"pos, xs[:3]": "cg", "a, xs[:3]": "gmres bicgstab"},
    "jax.scipy.optimize": {},
}
SPELLED = {
    "jax.numpy": NUMPY,
    "jax.nn": NN,
    "jax.scipy.special": SPECIAL,
    "jax.scipy.linalg": LINALG,
    **OTHERS,
}
LEFT_OUT = {
    "jax.numpy": {
        "integers, booleans or positions come out": "all allclose any argmax argmin argpartition argsort "
        "argwhere "
        "array_equal array_equiv bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not "
        "bitwise_or bitwise_right_shift bitwise_xor count_nonzero digitize equal flatnonzero gcd greater "
        "greater_equal invert isclose iscomplex isfinite isin isinf isnan isneginf isposinf isreal lcm "
        "left_shift less less_equal lexsort logical_and logical_not logical_or logical_xor nanargmax "
        "nanargmin "
        "nonzero not_equal packbits ravel_multi_index right_shift searchsorted signbit unpackbits "
        "unravel_index histogram2d histogramdd histogram_bin_edges linalg.matrix_rank",
        "makes an array of none": "arange bartlett blackman diag_indices diag_indices_from empty "
        "empty_like eye "
        "from_dlpack frombuffer fromfile fromfunction fromiter fromstring full full_like hamming hanning "
        "identity indices kaiser mask_indices ones ones_like tri tril_indices tril_indices_from triu_indices "
        "triu_indices_from zeros zeros_like",
        "no function of arrays": "array_repr array_str broadcast_shapes can_cast einsum_path frompyfunc "
        "get_printoptions iscomplexobj isdtype isrealobj isscalar issubdtype iterable load ndim printoptions "
        "promote_types result_type save savez set_printoptions shape size vectorize",
        "the shape depends on the values": "intersect1d setdiff1d setxor1d union1d unique unique_all "
        "unique_counts unique_inverse unique_values",
        "JAX defines no derivative": "frexp spacing",
        "eigenvectors have any phase: none is the derivative of another": "linalg.eig",
    },
    "jax.nn": {
        "integers come in": "one_hot",
        "no function of arrays": "get_scaled_dot_general_config",
        "for accelerators": "scaled_dot_general scaled_matmul",
    },
    "jax.scipy.special": {
        "integers come in": "bernoulli comb sph_harm_y",
        "JAX defines no derivative": "wofz",
    },
    "jax.scipy.linalg": {
        "makes an array of none": "dft hadamard helmert hilbert invhilbert invpascal pascal",
        "JAX defines no derivative": "rsf2csf",
        "takes what another function made": "lu_solve qr_multiply",
    },
    "jax.scipy.stats": {"integers or positions come out": "mode rankdata"},
    "jax.scipy.optimize": {"a search: its result is no formula of its start": "minimize"},
}


def array(value: Any) -> Any:
    """Give an array of JAX's with all of its digits."""
    with jax.enable_x64(True):
        return jnp.asarray(value)


def table() -> driver.Table:
    """Give the table."""
    calls = calls_of(SPELLED, array, {"jnp": jnp})
    return driver.Table("JAX", jax.__version__, calls, KNOWN, left_out_of(SPELLED, LEFT_OUT))
