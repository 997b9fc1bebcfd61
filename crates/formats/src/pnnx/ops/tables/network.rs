//! What networks are made of: the modules of `torch.nn`, and the functions of `torch.nn.functional`.

use kilim_core::ops::{PadMode, SoftmaxKind, UnaryKind};

use crate::build::{OpTable, PoolKind};
use crate::pnnx::ops::Row::{self, Many, One};
use crate::pnnx::ops::recurrent::Cell;
use crate::pnnx::ops::{
    activation, arrange, attention, conv, norm, pad, pool, product, recurrent, reduce, sample,
};

/// Adaptive windows have no padding.
const MEAN: PoolKind = PoolKind::Mean {
    counts_padding: false,
};

/// Modules with weights of their own.
pub static MODULES: OpTable<&str, Row> = OpTable(&[
    (
        "nn.AdaptiveAvgPool1d",
        One(|i, l| pool::adaptive(i, l, 1, MEAN)),
    ),
    (
        "nn.AdaptiveAvgPool2d",
        One(|i, l| pool::adaptive(i, l, 2, MEAN)),
    ),
    (
        "nn.AdaptiveAvgPool3d",
        One(|i, l| pool::adaptive(i, l, 3, MEAN)),
    ),
    (
        "nn.AdaptiveMaxPool1d",
        One(|i, l| pool::adaptive(i, l, 1, PoolKind::Maximum)),
    ),
    (
        "nn.AdaptiveMaxPool2d",
        One(|i, l| pool::adaptive(i, l, 2, PoolKind::Maximum)),
    ),
    (
        "nn.AdaptiveMaxPool3d",
        One(|i, l| pool::adaptive(i, l, 3, PoolKind::Maximum)),
    ),
    ("nn.AlphaDropout", One(activation::passed)),
    ("nn.AvgPool1d", One(|i, l| pool::mean(i, l, 1))),
    ("nn.AvgPool2d", One(|i, l| pool::mean(i, l, 2))),
    ("nn.AvgPool3d", One(|i, l| pool::mean(i, l, 3))),
    ("nn.BatchNorm1d", One(norm::batch_norm)),
    ("nn.BatchNorm2d", One(norm::batch_norm)),
    ("nn.BatchNorm3d", One(norm::batch_norm)),
    ("nn.CELU", One(activation::celu)),
    ("nn.ChannelShuffle", One(arrange::channel_shuffle)),
    (
        "nn.CircularPad1d",
        One(|i, l| pad::module(i, l, 1, PadMode::Wrap)),
    ),
    (
        "nn.CircularPad2d",
        One(|i, l| pad::module(i, l, 2, PadMode::Wrap)),
    ),
    (
        "nn.CircularPad3d",
        One(|i, l| pad::module(i, l, 3, PadMode::Wrap)),
    ),
    (
        "nn.ConstantPad1d",
        One(|i, l| pad::module(i, l, 1, PadMode::Constant)),
    ),
    (
        "nn.ConstantPad2d",
        One(|i, l| pad::module(i, l, 2, PadMode::Constant)),
    ),
    (
        "nn.ConstantPad3d",
        One(|i, l| pad::module(i, l, 3, PadMode::Constant)),
    ),
    ("nn.Conv1d", One(|i, l| conv::convolution(i, l, 1))),
    ("nn.Conv2d", One(|i, l| conv::convolution(i, l, 2))),
    ("nn.Conv3d", One(|i, l| conv::convolution(i, l, 3))),
    ("nn.ConvTranspose1d", One(|i, l| conv::transposed(i, l, 1))),
    ("nn.ConvTranspose2d", One(|i, l| conv::transposed(i, l, 2))),
    ("nn.ConvTranspose3d", One(|i, l| conv::transposed(i, l, 3))),
    ("nn.CosineSimilarity", One(reduce::cosine_similarity)),
    ("nn.Dropout", One(activation::passed)),
    ("nn.Dropout1d", One(activation::passed)),
    ("nn.Dropout2d", One(activation::passed)),
    ("nn.Dropout3d", One(activation::passed)),
    ("nn.ELU", One(activation::elu)),
    ("nn.Embedding", One(product::embedding)),
    ("nn.FeatureAlphaDropout", One(activation::passed)),
    ("nn.Flatten", One(arrange::flatten)),
    ("nn.Fold", One(sample::fold)),
    ("nn.GELU", One(activation::gelu)),
    ("nn.GLU", One(activation::glu)),
    ("nn.GRU", Many(|i, l| recurrent::module(i, l, Cell::Gru))),
    ("nn.GroupNorm", One(norm::group_norm)),
    ("nn.Hardshrink", One(activation::hard_shrink)),
    ("nn.Hardsigmoid", One(activation::hard_sigmoid)),
    (
        "nn.Hardswish",
        One(|i, l| activation::of(i, l, UnaryKind::HardSwish)),
    ),
    ("nn.Hardtanh", One(activation::hard_tanh)),
    ("nn.Identity", One(activation::passed)),
    ("nn.InstanceNorm1d", One(norm::instance_norm)),
    ("nn.InstanceNorm2d", One(norm::instance_norm)),
    ("nn.InstanceNorm3d", One(norm::instance_norm)),
    ("nn.LPPool1d", One(|i, l| pool::power(i, l, 1))),
    ("nn.LPPool2d", One(|i, l| pool::power(i, l, 2))),
    ("nn.LSTM", Many(|i, l| recurrent::module(i, l, Cell::Lstm))),
    ("nn.LayerNorm", One(norm::layer_norm)),
    ("nn.LeakyReLU", One(activation::leaky_relu)),
    ("nn.Linear", One(product::linear)),
    ("nn.LocalResponseNorm", One(norm::lrn)),
    ("nn.LogSigmoid", One(activation::log_sigmoid)),
    (
        "nn.LogSoftmax",
        One(|i, l| activation::softmax(i, l, SoftmaxKind::LogSoftmax)),
    ),
    ("nn.MaxPool1d", One(|i, l| pool::max(i, l, 1))),
    ("nn.MaxPool2d", One(|i, l| pool::max(i, l, 2))),
    ("nn.MaxPool3d", One(|i, l| pool::max(i, l, 3))),
    ("nn.Mish", One(|i, l| activation::of(i, l, UnaryKind::Mish))),
    ("nn.MultiheadAttention", One(attention::multi_head)),
    ("nn.PReLU", One(activation::prelu)),
    ("nn.PixelShuffle", One(arrange::pixel_shuffle)),
    ("nn.PixelUnshuffle", One(arrange::pixel_unshuffle)),
    ("nn.RMSNorm", One(norm::rms_norm)),
    ("nn.RNN", Many(|i, l| recurrent::module(i, l, Cell::Rnn))),
    ("nn.RReLU", One(activation::rrelu)),
    ("nn.ReLU", One(|i, l| activation::of(i, l, UnaryKind::Relu))),
    ("nn.ReLU6", One(activation::relu6)),
    (
        "nn.ReflectionPad1d",
        One(|i, l| pad::module(i, l, 1, PadMode::Reflect)),
    ),
    (
        "nn.ReflectionPad2d",
        One(|i, l| pad::module(i, l, 2, PadMode::Reflect)),
    ),
    (
        "nn.ReflectionPad3d",
        One(|i, l| pad::module(i, l, 3, PadMode::Reflect)),
    ),
    (
        "nn.ReplicationPad1d",
        One(|i, l| pad::module(i, l, 1, PadMode::Edge)),
    ),
    (
        "nn.ReplicationPad2d",
        One(|i, l| pad::module(i, l, 2, PadMode::Edge)),
    ),
    (
        "nn.ReplicationPad3d",
        One(|i, l| pad::module(i, l, 3, PadMode::Edge)),
    ),
    ("nn.SELU", One(activation::selu)),
    (
        "nn.SiLU",
        One(|i, l| activation::of(i, l, UnaryKind::Swish { alpha: 1.0 })),
    ),
    (
        "nn.Sigmoid",
        One(|i, l| activation::of(i, l, UnaryKind::Sigmoid)),
    ),
    (
        "nn.Softmax",
        One(|i, l| activation::softmax(i, l, SoftmaxKind::Softmax)),
    ),
    (
        "nn.Softmax2d",
        One(|i, l| activation::softmax(i, l, SoftmaxKind::Softmax)),
    ),
    ("nn.Softmin", One(activation::softmin)),
    ("nn.Softplus", One(activation::softplus)),
    ("nn.Softshrink", One(activation::soft_shrink)),
    (
        "nn.Softsign",
        One(|i, l| activation::of(i, l, UnaryKind::Softsign)),
    ),
    ("nn.Tanh", One(|i, l| activation::of(i, l, UnaryKind::Tanh))),
    ("nn.Tanhshrink", One(activation::tanh_shrink)),
    ("nn.Threshold", One(activation::threshold)),
    ("nn.Unflatten", One(arrange::unflatten)),
    ("nn.Unfold", One(sample::unfold)),
    ("nn.Upsample", One(|i, l| sample::resize(i, l, None))),
    (
        "nn.UpsamplingBilinear2d",
        One(|i, l| sample::resize(i, l, Some("bilinear"))),
    ),
    (
        "nn.UpsamplingNearest2d",
        One(|i, l| sample::resize(i, l, Some("nearest"))),
    ),
    (
        "nn.ZeroPad1d",
        One(|i, l| pad::module(i, l, 1, PadMode::Constant)),
    ),
    (
        "nn.ZeroPad2d",
        One(|i, l| pad::module(i, l, 2, PadMode::Constant)),
    ),
    (
        "nn.ZeroPad3d",
        One(|i, l| pad::module(i, l, 3, PadMode::Constant)),
    ),
]);

/// Functions of `torch.nn.functional`.
pub static FUNCTIONS: OpTable<&str, Row> = OpTable(&[
    (
        "F.adaptive_avg_pool1d",
        One(|i, l| pool::adaptive(i, l, 1, MEAN)),
    ),
    (
        "F.adaptive_avg_pool2d",
        One(|i, l| pool::adaptive(i, l, 2, MEAN)),
    ),
    (
        "F.adaptive_avg_pool3d",
        One(|i, l| pool::adaptive(i, l, 3, MEAN)),
    ),
    (
        "F.adaptive_max_pool1d",
        One(|i, l| pool::adaptive(i, l, 1, PoolKind::Maximum)),
    ),
    (
        "F.adaptive_max_pool2d",
        One(|i, l| pool::adaptive(i, l, 2, PoolKind::Maximum)),
    ),
    (
        "F.adaptive_max_pool3d",
        One(|i, l| pool::adaptive(i, l, 3, PoolKind::Maximum)),
    ),
    ("F.affine_grid", One(sample::affine_grid)),
    ("F.alpha_dropout", One(activation::passed)),
    ("F.avg_pool1d", One(|i, l| pool::mean(i, l, 1))),
    ("F.avg_pool2d", One(|i, l| pool::mean(i, l, 2))),
    ("F.avg_pool3d", One(|i, l| pool::mean(i, l, 3))),
    ("F.batch_norm", One(norm::batch_norm)),
    ("F.celu", One(activation::celu)),
    ("F.channel_shuffle", One(arrange::channel_shuffle)),
    ("F.conv1d", One(|i, l| conv::convolution(i, l, 1))),
    ("F.conv2d", One(|i, l| conv::convolution(i, l, 2))),
    ("F.conv3d", One(|i, l| conv::convolution(i, l, 3))),
    ("F.conv_transpose1d", One(|i, l| conv::transposed(i, l, 1))),
    ("F.conv_transpose2d", One(|i, l| conv::transposed(i, l, 2))),
    ("F.conv_transpose3d", One(|i, l| conv::transposed(i, l, 3))),
    ("F.cosine_similarity", One(reduce::cosine_similarity)),
    ("F.dropout", One(activation::passed)),
    ("F.dropout1d", One(activation::passed)),
    ("F.dropout2d", One(activation::passed)),
    ("F.dropout3d", One(activation::passed)),
    ("F.elu", One(activation::elu)),
    ("F.embedding", One(product::embedding)),
    ("F.feature_alpha_dropout", One(activation::passed)),
    ("F.fold", One(sample::fold)),
    ("F.gelu", One(activation::gelu)),
    ("F.glu", One(activation::glu)),
    ("F.grid_sample", One(sample::grid_sample)),
    ("F.group_norm", One(norm::group_norm)),
    ("F.hardshrink", One(activation::hard_shrink)),
    ("F.hardsigmoid", One(activation::hard_sigmoid)),
    (
        "F.hardswish",
        One(|i, l| activation::of(i, l, UnaryKind::HardSwish)),
    ),
    ("F.hardtanh", One(activation::hard_tanh)),
    ("F.instance_norm", One(norm::instance_norm)),
    ("F.interpolate", One(|i, l| sample::resize(i, l, None))),
    ("F.layer_norm", One(norm::layer_norm)),
    ("F.leaky_relu", One(activation::leaky_relu)),
    ("F.linear", One(product::linear)),
    ("F.local_response_norm", One(norm::lrn)),
    (
        "F.log_softmax",
        One(|i, l| activation::softmax(i, l, SoftmaxKind::LogSoftmax)),
    ),
    ("F.logsigmoid", One(activation::log_sigmoid)),
    ("F.lp_pool1d", One(|i, l| pool::power(i, l, 1))),
    ("F.lp_pool2d", One(|i, l| pool::power(i, l, 2))),
    ("F.max_pool1d", One(|i, l| pool::max(i, l, 1))),
    ("F.max_pool2d", One(|i, l| pool::max(i, l, 2))),
    ("F.max_pool3d", One(|i, l| pool::max(i, l, 3))),
    ("F.mish", One(|i, l| activation::of(i, l, UnaryKind::Mish))),
    ("F.normalize", One(norm::normalize)),
    ("F.pad", One(pad::function)),
    ("F.pairwise_distance", One(reduce::pairwise_distance)),
    ("F.pixel_shuffle", One(arrange::pixel_shuffle)),
    ("F.pixel_unshuffle", One(arrange::pixel_unshuffle)),
    ("F.prelu", One(activation::prelu)),
    ("F.relu", One(|i, l| activation::of(i, l, UnaryKind::Relu))),
    ("F.relu6", One(activation::relu6)),
    ("F.rms_norm", One(norm::rms_norm)),
    ("F.rrelu", One(activation::rrelu)),
    ("F.scaled_dot_product_attention", One(attention::scaled)),
    ("F.selu", One(activation::selu)),
    (
        "F.sigmoid",
        One(|i, l| activation::of(i, l, UnaryKind::Sigmoid)),
    ),
    (
        "F.silu",
        One(|i, l| activation::of(i, l, UnaryKind::Swish { alpha: 1.0 })),
    ),
    (
        "F.softmax",
        One(|i, l| activation::softmax(i, l, SoftmaxKind::Softmax)),
    ),
    ("F.softmin", One(activation::softmin)),
    ("F.softplus", One(activation::softplus)),
    ("F.softshrink", One(activation::soft_shrink)),
    (
        "F.softsign",
        One(|i, l| activation::of(i, l, UnaryKind::Softsign)),
    ),
    ("F.tanh", One(|i, l| activation::of(i, l, UnaryKind::Tanh))),
    ("F.tanhshrink", One(activation::tanh_shrink)),
    ("F.threshold", One(activation::threshold)),
    ("F.unfold", One(sample::unfold)),
    ("F.upsample", One(|i, l| sample::resize(i, l, None))),
    (
        "F.upsample_bilinear",
        One(|i, l| sample::resize(i, l, Some("bilinear"))),
    ),
    (
        "F.upsample_nearest",
        One(|i, l| sample::resize(i, l, Some("nearest"))),
    ),
]);
