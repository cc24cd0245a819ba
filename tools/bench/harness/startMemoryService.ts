import { join } from 'node:path'
import { type Program, startProgram } from '../../../test/support/program.ts'

/** Starts the stand-in for the service. With `keepsArrivals` it remembers the time and body of every request. */
export async function startMemoryService(
  processingMs: number,
  { keepsArrivals = false } = {},
): Promise<Program & { readonly url: string }> {
  const child = startProgram({
    script: join(import.meta.dirname, 'memoryService.ts'),
    stderr: 'inherit',
    args: [String(processingMs), ...(keepsArrivals ? ['--arrivals'] : [])],
  })
  const line = await child.line((each) => each.startsWith('listening '))
  return { ...child, url: line.slice('listening '.length) }
}
