// Entries of the package that a page fetches when it first calls for them.

export const pictures = (): Promise<typeof import('./pictures.js')> => import('./pictures.js');

export const downloads = (): Promise<typeof import('./downloads.js')> => import('./downloads.js');
