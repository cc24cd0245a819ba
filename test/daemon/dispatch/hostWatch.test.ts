import { expect, test } from 'vitest'
import { HostWatch } from '../../../src/daemon/dispatch/hostWatch.ts'
import { noAnswer, response } from '../../support/answers.ts'

function setup() {
  let nowMs = 0
  const watch = new HostWatch({
    stopwatch() {
      const startMs = nowMs
      return () => nowMs - startMs
    },
  })
  const waitMs = () => {
    const startMs = nowMs
    while (!watch.mayClaim()) nowMs += 500
    return nowMs - startMs
  }
  return { watch, waitMs }
}

const lacking = noAnswer({ sent: false, cause: 'host' })

test('an instance waits 1, 2, 4 … 60 s after each fault of its host', () => {
  const { watch, waitMs } = setup()
  const waits = Array.from({ length: 8 }, () => {
    watch.note(lacking)
    return waitMs()
  })
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
  expect(watch.fault()).toBe(lacking.detail)
})

test('requests that fail together count as one fault', () => {
  const { watch, waitMs } = setup()
  for (let n = 0; n < 8; n++) watch.note(lacking)
  expect(waitMs()).toBe(1_000)
})

test.each([
  response(503),
  noAnswer({ sent: false, cause: 'network' }),
  noAnswer({ sent: true, cause: 'timeout' }),
])('a request that the host could send ends the fault', (answer) => {
  const { watch } = setup()
  watch.note(lacking)
  watch.note(answer)
  expect([watch.mayClaim(), watch.fault()]).toEqual([true, null])
})

test('a request that never left, such as one past its deadline, says nothing about the host', () => {
  const { watch } = setup()
  watch.note(lacking)
  watch.note(null)
  expect([watch.mayClaim(), watch.fault()]).toEqual([false, lacking.detail])
})
