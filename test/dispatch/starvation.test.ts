import { expect, test } from 'vitest'
import { watchStarvation } from '../../src/dispatch/starvation.ts'

function setup() {
  const said: string[] = []
  const watch = watchStarvation({ began: () => said.push('began'), ended: () => said.push('ended') })
  return { said, saw: (...all: boolean[]) => all.forEach(watch.saw) }
}

test('five permits in a row that run out begin it, once; the first request that leaves ends it', () => {
  const { said, saw } = setup()
  saw(false, false, false, false)
  expect(said).toEqual([])
  saw(false, false, false)
  expect(said).toEqual(['began'])
  saw(true, true)
  expect(said).toEqual(['began', 'ended'])
})

test('one that runs out now and then is no starvation; the first that leaves ends what was said before', () => {
  const { said, saw } = setup()
  for (let n = 0; n < 10; n++) saw(false, false, false, false, true)
  expect(said).toEqual(['ended'])
})
