//! Compiled pipelines, shared by all sessions on a device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use kilim_core::{Error, ErrorCode, Result};

use crate::gpu::{Gpu, lock};
use crate::shaders::Variant;

/// A compute pipeline and the layout of its bind group.
pub(crate) struct Pipeline {
    pub raw: wgpu::ComputePipeline,
    pub layout: Arc<wgpu::BindGroupLayout>,
}

#[derive(Default)]
pub(crate) struct Pipelines {
    layouts: Mutex<HashMap<Vec<bool>, Arc<wgpu::BindGroupLayout>>>,
    compiled: Mutex<HashMap<Variant, Arc<Pipeline>>>,
}

impl Pipelines {
    /// The pipeline of a variant, compiled at its first use.
    pub fn get(&self, gpu: &Gpu, variant: &Variant) -> Result<Arc<Pipeline>> {
        if let Some(pipeline) = lock(&self.compiled).get(variant) {
            return Ok(pipeline.clone());
        }
        let source = variant.source().map_err(|e| {
            Error::new(
                ErrorCode::Device,
                format!("the shader {} is wrong: {e}", variant.label()),
            )
        })?;
        let label = variant.label();
        let layout = self.layout(gpu, &variant.read_only);
        let module = gpu
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(&label),
                source: wgpu::ShaderSource::Wgsl(source.into()),
            });
        let pipeline_layout = gpu
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
        let raw = gpu
            .device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(&label),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Every kernel writes workgroup memory before it reads it.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: None,
            });
        gpu.check()
            .map_err(|e| e.with_hint(format!("while compiling the shader {label}")))?;
        let pipeline = Arc::new(Pipeline { raw, layout });
        lock(&self.compiled).insert(variant.clone(), pipeline.clone());
        Ok(pipeline)
    }

    fn layout(&self, gpu: &Gpu, read_only: &[bool]) -> Arc<wgpu::BindGroupLayout> {
        let mut layouts = lock(&self.layouts);
        if let Some(layout) = layouts.get(read_only) {
            return layout.clone();
        }
        let entry = |binding: u32, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform)];
        for (i, &read_only) in read_only.iter().enumerate() {
            entries.push(entry(
                i as u32 + 1,
                wgpu::BufferBindingType::Storage { read_only },
            ));
        }
        let layout = Arc::new(gpu.device.create_bind_group_layout(
            &wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &entries,
            },
        ));
        layouts.insert(read_only.to_vec(), layout.clone());
        layout
    }
}
