import * as ownDownloads from '../downloads.js';
import * as ownPictures from '../pictures.js';

// The code is here already, since service workers import nothing later.

export const pictures = async (): Promise<typeof ownPictures> => ownPictures;

export const downloads = async (): Promise<typeof ownDownloads> => ownDownloads;
