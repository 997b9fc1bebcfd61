/** What a model file says of itself. Texts are empty where it says nothing. */
export interface ModelMetadata {
  /** What the model is called. */
  name: string;
  /** What the model is for, in words. */
  description: string;
  /** The program that wrote the file. */
  producer: string;
  /** The version of that program. */
  producerVersion: string;
  /** Whose model it is, as a domain in the reverse order: `org.example`. */
  domain: string;
  /** The version of the model. */
  version: string;
  /** Everything else: texts by keys of the format or of the author. Of a key that stands twice, the last. */
  entries: Record<string, string>;
}

/** The fields that are one text, in the order of the runtime (`crates/web/src/metadata.rs`). */
export const FIELDS = ['name', 'description', 'producer', 'producerVersion', 'domain', 'version'] as const;

/** Reads the list of the runtime: the fields, and behind them of each entry the key and the text. */
export function readMetadata(said: readonly string[]): ModelMetadata {
  const fields = FIELDS.map((field, i) => [field, said[i]]);
  const rest = said.slice(FIELDS.length);
  const entries = rest.flatMap((key, i) => (i % 2 === 0 ? [[key, rest[i + 1]]] : []));
  return { ...Object.fromEntries(fields), entries: Object.fromEntries(entries) } as ModelMetadata;
}
