// Four columns of c: scale, bias, residual, activation and factor.
fn store(m: u32, n: u32, batch: u32, v: vec4<f32>) {
    if m >= p.product.m || n >= p.product.n { return; }
#if READ_A == conv4 || READ_A == conv1
    let row = (m / p.im2col.positions) * p.im2col.c_image + (m % p.im2col.positions) * p.product.c_row;
#else
    let row = m * p.product.c_row;
#endif
    let at = batch * p.product.c_batch + row + n * p.product.c_col;
    var r = p.product.alpha * v;
#if HAS_BIAS
    let j = batch * p.product.bias_batch + m * p.product.bias_row + n * p.product.bias_col;
    r += p.product.beta * vec4<f32>(vec4<S>(bias[j], bias[j + p.product.bias_col], bias[j + 2u * p.product.bias_col], bias[j + 3u * p.product.bias_col]));
#endif
#if C4
#if HAS_RESIDUAL
    r += vec4<f32>(residual[at / 4u]);
#endif
    r = activate4(r, p.act);
#if HAS_FACTOR
    r *= vec4<f32>(factor[at / 4u]);
#endif
    c[at / 4u] = vec4<S>(r);
#else
#if HAS_RESIDUAL
    r += vec4<f32>(vec4<S>(residual[at], residual[at + p.product.c_col], residual[at + 2u * p.product.c_col], residual[at + 3u * p.product.c_col]));
#endif
    r = activate4(r, p.act);
#if HAS_FACTOR
    r *= vec4<f32>(vec4<S>(factor[at], factor[at + p.product.c_col], factor[at + 2u * p.product.c_col], factor[at + 3u * p.product.c_col]));
#endif
    for (var j = 0u; j < min(4u, p.product.n - n); j++) {
        c[at + j * p.product.c_col] = S(r[j]);
    }
#endif
}
