/** Parses the library's JSON, with its names in JavaScript's spelling. */
export function readJson<T>(text: string): T {
  return JSON.parse(text, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const camel = (name: string) => name.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [camel(name), part]));
  }) as T;
}
