import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of package.json, migrations, mappings and assets: above `src` in a checkout, above `dist` in the package. */
export const packageFolder = fileURLToPath(new URL('..', import.meta.url))

/** `src/main.ts` in a checkout, `dist/main.js` in the package. */
export const programFile = fileURLToPath(new URL(`main${extname(import.meta.url)}`, import.meta.url))
