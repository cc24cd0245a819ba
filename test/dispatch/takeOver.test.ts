import { expect, test } from 'vitest'
import { takeOver } from '../../src/dispatch/takeOver.ts'
import type { Answer, Submission, Transition } from '../../src/record.ts'
import { submission } from '../support/submission.ts'

function setup(abandoned: Submission[]) {
  const judged: Answer[] = []
  const written: Transition[][] = []
  return {
    judged,
    written,
    run: (writes = abandoned.length) =>
      takeOver({
        readAbandoned: async () => abandoned,
        judge(_, answer) {
          judged.push(answer)
          return { step: { change: { state: 'uncertain' }, cause: 'in doubt', pause: null }, answer, breach: null }
        },
        async writeSteps(transitions) {
          written.push([...transitions])
          return transitions.slice(0, writes)
        },
      }),
  }
}

test('what a dead instance was sending is judged as a connection lost after the request had left', async () => {
  const { run, judged, written } = setup([submission({ id: 'a' }), submission({ id: 'b' })])
  expect(await run()).toBe(2)
  expect(judged).toMatchObject([
    { kind: 'no-answer', sent: true, cause: 'network' },
    { kind: 'no-answer', sent: true, cause: 'network' },
  ])
  expect(written).toMatchObject([
    [
      { submission: { id: 'a' }, job: null, change: { state: 'uncertain' }, cause: 'in doubt' },
      { submission: { id: 'b' }, job: null },
    ],
  ])
})

test('one whose worker was alive after all and wrote first is not counted', async () => {
  expect(await setup([submission(), submission()]).run(1)).toBe(1)
})

test('where nothing was abandoned nothing is written', async () => {
  const { run, written } = setup([])
  expect(await run()).toBe(0)
  expect(written).toEqual([])
})
