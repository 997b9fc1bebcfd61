/// <reference lib="esnext.disposable" preserve="true" />

/** What a block ends that begins with `using`. */
export interface Closes extends Disposable, AsyncDisposable {
  close(): void;
}

/** Has such blocks close objects of a class. Where the engine does not know the symbols, there is nobody to call them. */
export function closedByBlocks({ prototype }: { prototype: Closes }): void {
  if (Symbol.dispose) Object.defineProperty(prototype, Symbol.dispose, { value: prototype.close });
  if (!Symbol.asyncDispose) return;
  Object.defineProperty(prototype, Symbol.asyncDispose, {
    async value(this: Closes) {
      this.close();
    },
  });
}
