/** A worker's end of its messages, as far as it is used here. */
export interface Scope {
  postMessage(message: unknown, transfer: Transferable[]): void;
  // biome-ignore lint/suspicious/noExplicitAny: each worker knows the messages that it gets.
  addEventListener(type: 'message', listener: (event: { data: any }) => void): void;
}

export const scope = globalThis as unknown as Scope;
