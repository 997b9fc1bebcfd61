import type { Needs } from './parts.js';

export declare const needs: Needs;
