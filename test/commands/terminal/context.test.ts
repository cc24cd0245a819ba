import { PassThrough } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { createProgressPrinter } from '../../../src/commands/terminal/context.ts'

test('progress is printed every two seconds, first after two seconds', () => {
  let nowMs = 0
  using _ = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const stderr = new PassThrough({ encoding: 'utf8' })
  const tell = createProgressPrinter({ stderr }, (done: number) => `Settled ${done} ...`)
  for (let done = 1; done <= 50; done += 1) {
    nowMs = done * 100
    tell(done)
  }
  expect(stderr.read()).toBe('Settled 20 ...\nSettled 40 ...\n')
})
