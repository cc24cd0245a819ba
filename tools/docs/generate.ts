import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { referencePages } from './referencePages.ts'

const checkout = join(import.meta.dirname, '../..')
for (const [path, text] of await referencePages()) {
  mkdirSync(dirname(join(checkout, path)), { recursive: true })
  writeFileSync(join(checkout, path), text)
  process.stdout.write(`wrote ${path}\n`)
}
