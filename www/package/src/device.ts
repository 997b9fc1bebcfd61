/// <reference lib="esnext.disposable" preserve="true" />
import { KilimError, reading, toKilimError } from './errors.js';
import type { Engine } from './protocol.js';
import { fromWire } from './tensor.js';
import type { DType, Tensor } from './tensor.js';
import type { WireKept } from './values.js';

/** Where a tensor is kept: the runtime, and its number there. */
interface Place {
  engine: Engine;
  number: number;
  /** Not to be collected before the tensor, since that would close it. */
  session: object;
}

const places = new WeakMap<DeviceTensor, Place>();

/** How many tensors runs of each session have kept that nobody has given back. */
const counts = new WeakMap<object, number>();

export const keptBy = (session: object): number => counts.get(session) ?? 0;

function count({ session }: Place, change: number): void {
  counts.set(session, keptBy(session) + change);
}

/** Gives back what tensors held that nobody has any more. */
const dropped = new FinalizationRegistry<Place>((place) => {
  count(place, -1);
  release(place);
});

function release({ engine, number }: Place): void {
  // A session that is closed has given everything back.
  engine.releaseKept([number]).catch(() => undefined);
}

function placeOf(tensor: DeviceTensor): Place {
  const place = places.get(tensor);
  if (!place) throw new KilimError('STATE', 'a kept tensor was disposed of');
  return place;
}

/**
 * An output that stays where it was computed: on the GPU, or in the runtime's memory. It can be given to further runs. It holds its
 * memory until `dispose`, until its session is closed, or until its object is collected, which may be late.
 *
 *     const { state } = await session.run<DeviceTensor>({ word: [5] }, { keep: ['state'] });
 *     const elements = (await state?.read())?.data;
 *     state?.dispose();
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the interface declares what is set on the prototype where the engine has the symbol.
export class DeviceTensor {
  readonly type: DType;
  readonly dims: readonly number[];

  /** Runs with the option `keep` make these. */
  constructor(engine: Engine, wire: WireKept, session: object) {
    const { kept: number, type, dims } = reading('a kept tensor', () => ({ ...wire }));
    if (number === undefined || typeof engine?.readKept !== 'function')
      throw new KilimError('INVALID_VALUE', 'kept tensors are made by `run` with the option `keep`');
    this.type = type;
    this.dims = dims;
    const place = { engine, number, session };
    places.set(this, place);
    count(place, 1);
    dropped.register(this, place, this);
  }

  /**
   * The elements.
   * @throws KilimError `STATE` where the tensor was disposed of or its session is closed, `DEVICE` where its device is gone.
   */
  async read(): Promise<Tensor> {
    const { engine, number } = placeOf(this);
    try {
      return fromWire(await engine.readKept(number));
    } catch (error) {
      throw toKilimError(error);
    }
  }

  /** Gives the memory back. Calls that were made before have it still. */
  dispose(): void {
    const place = places.get(this);
    if (!place) return;
    forget(this, place);
    release(place);
  }
}

export interface DeviceTensor extends Disposable {}

// Where the engine does not know it, there is nobody to call it.
if (Symbol.dispose) Object.defineProperty(DeviceTensor.prototype, Symbol.dispose, { value: DeviceTensor.prototype.dispose });

function forget(tensor: DeviceTensor, place: Place): void {
  places.delete(tensor);
  dropped.unregister(tensor);
  count(place, -1);
}

/** Hands a tensor's memory over to a run: the tensor is disposed of. What is given gives the memory back, should the run not come to take it. */
export function spend(tensor: DeviceTensor): () => void {
  const place = placeOf(tensor);
  forget(tensor, place);
  return () => release(place);
}

/** What an input of `engine` is given where the tensor is in that engine. */
export function wireKept(engine: Engine, name: string, tensor: DeviceTensor): WireKept | undefined {
  const place = placeOf(tensor);
  return place.engine === engine ? { name, kept: place.number, type: tensor.type, dims: tensor.dims } : undefined;
}
