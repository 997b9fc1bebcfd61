import { describe } from '../describe.js';
import { KilimError } from '../index.js';
import type { DType, DeviceTensor, Session } from '../index.js';
import type { PictureToPaint } from '../painter.js';
import type { PictureOptions } from './options.js';
import { isPixels } from './pixels.js';
import type { Picture } from './pixels.js';
import type { Place } from './place.js';
import { planOf, wordsOf } from './plan.js';
import type { Recipe } from './recipe.js';

/** What is used of a session. */
export type Painter = Pick<Session, 'paint' | 'report'>;

/** @throws KilimError `INVALID_VALUE` for what is no session. */
export function checkPainter(session: unknown): void {
  if (typeof (session as Painter | null)?.paint === 'function') return;
  throw new KilimError('INVALID_VALUE', 'the option `session` is of another kind', { expected: 'a session', got: describe(session) });
}

/** The tensor on the session's GPU; `undefined` where it has none, and where pictures or elements are none for it. */
export async function painted(session: Painter, recipe: Recipe<DType>, options: PictureOptions): Promise<DeviceTensor | undefined> {
  if (!session.report.backends.some(({ id }) => id === 'wgpu')) return undefined;
  const words = wordsOf(recipe);
  const plans = words && recipe.batch.map(({ place }, number) => planOf(recipe, words, place, number, options));
  if (!plans?.every((plan) => plan !== undefined)) return undefined;
  const taken: PictureToPaint[] = [];
  try {
    for (const [number, { picture, place }] of recipe.batch.entries())
      taken.push({ ...(await take(picture, place)), plan: plans[number] as Int32Array });
    return await session.paint({ type: recipe.type, dims: recipe.dims, size: recipe.size, pictures: taken });
  } catch (error) {
    // What is broken, closed, or of another origin may not be taken along. The CPU's way says what it is.
    if (error instanceof DOMException || (error as KilimError).cause instanceof DOMException) return undefined;
    throw error;
  } finally {
    // What was handed over is empty here.
    for (const { source } of taken) if ('close' in source) source.close();
  }
}

/**
 * The part of a picture that counts, as it is now, in a form that goes to another thread without its pixels passing through the CPU. `VideoFrame`s
 * are bitmaps, too: Chromium does not copy them to a device of WebGPU on every system (`OperationError`), and turns and scales bitmaps of them as it draws them.
 */
async function take(picture: Picture, { crop }: Place): Promise<Omit<PictureToPaint, 'plan'>> {
  const { x, y, width, height } = crop;
  const size = { width, height };
  if (isPixels(picture)) {
    const row = 4 * picture.width;
    const bytes = picture.data.slice(y * row, (y + height) * row);
    return { source: bytes, offset: 4 * x, row, size };
  }
  const source = await createImageBitmap(picture, x, y, width, height, { premultiplyAlpha: 'none' });
  return { source, offset: 0, row: 0, size };
}
