import { join } from 'node:path'
import { type Child, startChild } from './child.ts'

/** Starts the stand-in for the service. With `keepsArrivals` it remembers every request's instant and body. */
export async function startMemoryService(
  processingMs: number,
  { keepsArrivals = false } = {},
): Promise<Child & { readonly url: string }> {
  const child = startChild({
    script: join(import.meta.dirname, 'memoryService.ts'),
    args: [String(processingMs), ...(keepsArrivals ? ['--arrivals'] : [])],
  })
  const line = await child.line((each) => each.startsWith('listening '))
  return { ...child, url: line.slice('listening '.length) }
}
