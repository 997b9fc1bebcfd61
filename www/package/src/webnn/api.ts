// The parts of the Web Neural Network API (https://www.w3.org/TR/webnn/) that are used here: the page's types do not have them yet.

export interface Descriptor {
  dataType: 'float32';
  shape: readonly number[];
}

export interface Operand {
  readonly shape: readonly number[];
}

export interface Graph {
  destroy?(): void;
}

export interface DeviceTensor {
  destroy(): void;
}

export interface Context {
  createTensor(descriptor: Descriptor & { readable?: boolean; writable?: boolean }): Promise<DeviceTensor>;
  writeTensor(tensor: DeviceTensor, data: BufferSource): void;
  readTensor(tensor: DeviceTensor): Promise<ArrayBuffer>;
  dispatch(graph: Graph, inputs: Record<string, DeviceTensor>, outputs: Record<string, DeviceTensor>): void;
  opSupportLimits(): { preferredInputLayout?: 'nchw' | 'nhwc'; maxTensorByteLength?: number };
}

/** What makes a graph. Its operators are methods, too, which browsers have more or fewer of: see `Node.call`. */
export interface Builder {
  input(name: string, descriptor: Descriptor): Operand;
  constant(descriptor: Descriptor, data: BufferSource): Operand;
  build(outputs: Record<string, Operand>): Promise<Graph>;
}

interface Ml {
  createContext(options?: { powerPreference?: 'default' | 'high-performance' | 'low-power' }): Promise<Context>;
}

type BuilderClass = new (context: Context) => Builder;

/** @throws Error with the reason where this browser has no WebNN. */
export function requireMl(): { ml: Ml; Builder: BuilderClass } {
  const { navigator, MLGraphBuilder, isSecureContext } = globalThis as unknown as {
    navigator?: { ml?: Ml };
    MLGraphBuilder?: BuilderClass;
    isSecureContext?: boolean;
  };
  const ml = navigator?.ml;
  if (ml && MLGraphBuilder) return { ml, Builder: MLGraphBuilder };
  if (isSecureContext === undefined) throw new Error('this JavaScript engine has no WebNN');
  throw new Error(isSecureContext ? 'this browser has no WebNN' : 'WebNN needs a page served over https');
}
