//! Every variant of every shader can be written for Metal and for DirectX 12, as `wgpu` does it on macOS, iOS and Windows.

use naga::back::{hlsl, msl};

use super::shaders::{ALL, parse};

/// What `wgpu` asks Metal for on the systems that it runs on at least: macOS 10.13 and iOS 11 have 2.0, halves need no more.
const METAL: (u8, u8) = (2, 0);

#[test]
fn every_variant_is_written_for_metal_and_directx() {
    let metal = msl::Options {
        lang_version: METAL,
        ..msl::Options::default()
    };
    let directx = hlsl::Options {
        // The first with halves; without them 5.1 is enough.
        shader_model: hlsl::ShaderModel::V6_2,
        ..hlsl::Options::default()
    };
    let mut count = 0;
    for shader in ALL {
        for variant in shader.cases().flatten() {
            let (module, info) = parse(shader, variant);
            let label = || format!("{} {:?}", shader.path, variant.choices());
            let (text, _) =
                msl::write_string(&module, &info, &metal, &msl::PipelineOptions::default())
                    .unwrap_or_else(|e| panic!("{} for Metal: {e}", label()));
            assert!(text.contains("kernel void"), "{}: {text}", label());
            let mut text = String::new();
            let pipeline = hlsl::PipelineOptions::default();
            let mut writer = hlsl::Writer::new(&mut text, &directx, &pipeline);
            writer
                .write(&module, &info, None)
                .unwrap_or_else(|e| panic!("{} for DirectX: {e}", label()));
            assert!(text.contains("[numthreads("), "{}: {text}", label());
            count += 1;
        }
    }
    println!("{count} variants");
    assert!(count > 2000);
}
