import type { DType, Port } from 'kilim';
import type { PictureOptions } from 'kilim/pictures';

/** An input as the form has it. */
export interface GivenInput {
  port: Port;
  type: DType;
  dims: readonly number[];
  /** How a picture becomes the tensor, where the form has one. */
  picture?: PictureOptions;
}
