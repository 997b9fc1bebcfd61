import type { Port, Tensor } from 'kilim';

/** What a run gave, and what it was given. */
export interface Ran {
  outputs: Record<string, Tensor>;
  /** The names of classes, by their numbers; empty where the visitor gave none. */
  labels: readonly string[];
  /** The picture, and the size of the tensor that it became. */
  picture: { picture: ImageBitmap; width: number; height: number } | undefined;
}

/** Shows what a model of some kind says. */
export interface TaskView {
  readonly element: HTMLElement;
  show(ran: Ran): void;
}

/** The inputs and outputs of a model, for a guess at what it is for. */
export interface Ports {
  inputs: readonly Port[];
  outputs: readonly Port[];
  /** Whether a picture goes in. */
  picture: boolean;
}

export interface Task {
  label: string;
  /** Whether classes have numbers that a file of labels gives names to. */
  labelled: boolean;
  /** Whether the inputs and outputs speak for it. */
  fits(ports: Ports): boolean;
  make(): TaskView;
}

/** The name of a class. */
export const labelOf = (labels: readonly string[], index: number) => labels[index] ?? `class ${index}`;

/** Colours that stand apart, for classes by their numbers. */
export const colourOf = (index: number) => `hsl(${(index * 137.5 + 8) % 360} 75% 50%)`;
