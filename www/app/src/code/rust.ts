import type { DType } from 'kilim';
import { quoted } from './given.js';
import type { Program } from './given.js';

/** `F32` for `float32`, as `kilim::DType` names it. */
function dtype(type: DType): string {
  if (type === 'string') return 'String';
  if (type === 'bool') return 'Bool';
  return type
    .replace(/^bfloat/, 'BF')
    .replace(/^float/, 'F')
    .replace(/^uint/, 'U')
    .replace(/^int/, 'I')
    .replace(/^complex/, 'C')
    .toUpperCase();
}

/** The program in Rust, for a package with `kilim` and `pollster`. */
export function rust({ file, inputs, backends, strict }: Program): string {
  const tensors = inputs.filter(({ port }) => port.kind === 'tensor');
  const others = inputs.filter(({ port }) => port.kind !== 'tensor');
  const changed = backends.length > 0 || strict;
  return [
    `use kilim::{${tensors.length ? 'DType, ' : ''}LoadOptions, RunOptions${tensors.length ? ', Tensor' : ''}};`,
    '',
    'async fn run() -> kilim::Result<()> {',
    changed ? '    let mut options = LoadOptions::default();' : '    let options = LoadOptions::default();',
    backends.length > 0 && `    options.backends = vec![${backends.map((id) => `${quoted(id)}.into()`).join(', ')}];`,
    strict && '    options.strict = true;',
    `    let mut session = kilim::load(${quoted(file)}, options).await?;`,
    ...others.map(({ port }) => `    // ${quoted(port.name)} is a ${port.kind}: \`run_data\` takes those.`),
    tensors.length ? '    let inputs = [' : '    let inputs = [];',
    ...tensors.map(
      ({ port, type, dims }) => `        (${quoted(port.name)}, Tensor::zeros(DType::${dtype(type)}, &[${dims.join(', ')}])?),`,
    ),
    tensors.length > 0 && '    ];',
    '    let outputs = session.run(&inputs, &RunOptions::default()).await?;',
    '    for (name, tensor) in &outputs {',
    '        println!("{name}: {:?} {:?}", tensor.dtype(), tensor.shape());',
    '    }',
    '    Ok(())',
    '}',
    '',
    'fn main() -> kilim::Result<()> {',
    '    pollster::block_on(run())',
    '}',
    '',
  ]
    .filter((line) => line !== false)
    .join('\n');
}
