import { expect, test } from 'vitest'
import { rescueOrphans } from '../../../src/daemon/maintenance/rescueOrphans.ts'
import type { Answer, Submission, Transition } from '../../../src/model.ts'
import { asChange } from '../../support/change.ts'
import { submission } from '../../support/submission.ts'

const away = new Error('the database is away')

function setup(orphaned: Submission[], forgotten: Submission[] = [], refused = new Map<string, Error>()) {
  const interpreted: Answer[] = []
  const written: Transition[][] = []
  return {
    interpreted,
    written,
    run: (writes = orphaned.length + forgotten.length) =>
      rescueOrphans({
        readOrphaned: async () => orphaned,
        readForgotten: async () => forgotten,
        interpretAnswer(_, answer) {
          interpreted.push(answer)
          return {
            step: { change: asChange({ state: 'uncertain' }), cause: 'in doubt', pause: null },
            answer,
            breach: null,
          }
        },
        blameFor: (error) => (error === away ? 'everyone' : 'piece'),
        async writeSteps(transitions) {
          for (const { submission } of transitions) if (refused.has(submission.id)) throw refused.get(submission.id)
          written.push([...transitions])
          return transitions.slice(0, writes)
        },
      }),
  }
}

test('what a dead instance was sending is judged as a connection lost after the request had left', async () => {
  const { run, interpreted, written } = setup([submission({ id: 'a' }), submission({ id: 'b' })])
  expect(await run()).toBe(2)
  expect(interpreted).toMatchObject([
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

test('what this process does not have in hand any more is settled, with the reason', async () => {
  const { run, interpreted, written } = setup([], [submission({ id: 'forgotten' })])
  expect(await run()).toBe(1)
  expect(interpreted).toMatchObject([{ kind: 'no-answer', sent: true, detail: expect.stringContaining('went back') }])
  expect(written).toMatchObject([[{ submission: { id: 'forgotten' } }]])
})

test('one that the ledger refuses holds up no other, and is told', async () => {
  const refusal = new Error('refused')
  const orphans = ['a', 'bad', 'b'].map((id) => submission({ id }))
  const { run, written } = setup(orphans, [], new Map([['bad', refusal]]))
  await expect(run()).rejects.toBe(refusal)
  expect(written.map(([first]) => first?.submission.id)).toEqual(['a', 'b'])
})

test('while the ledger is away none is tried by itself', async () => {
  const orphans = ['a', 'b'].map((id) => submission({ id }))
  const { run, written } = setup(orphans, [], new Map([['a', away]]))
  await expect(run()).rejects.toBe(away)
  expect(written).toEqual([])
})
