import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageFolder } from './packageFolder.ts'

const packageFile = join(packageFolder, 'package.json')

export const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }
