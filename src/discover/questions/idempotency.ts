import type { DiscoverConfig } from '../../config.ts'
import { lineOf, nameOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Repeats, recognised, repeatsSample } from '../samples/repeats.ts'
import { idIn } from '../samples/submission.ts'

export const idempotency: Question = {
  name: 'idempotency',
  section: '4.2',
  asks: 'whether a request that is sent again under its Idempotency-Key is recognised',
  requestsMax: 0,
  recordsMax: 0,
  samples: [repeatsSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    return judgeIdempotency(await parts.sample(repeatsSample), parts.config.uncertainPolicy)
  },
}

type Policy = DiscoverConfig['uncertainPolicy']

/** `other key` tells a service that knows the key from one that knows the content. Pure. */
export function judgeIdempotency({ first, again, otherKey }: Repeats, policy: Policy): Finding {
  const assumed = `ignored, unless UNCERTAIN_POLICY is resend (it is ${policy})`
  const why = `first ${lineOf(first.answer)}; again ${lineOf(again.answer)}; under another key ${lineOf(otherKey.answer)}`
  if (idIn(first) === null) return unknown(`the first was not taken: ${lineOf(first.answer)}`, { assumed })
  const byKey = recognised(first, again)
  const byContent = recognised(first, otherKey)
  if (byKey === null) return unknown(why, { assumed })
  if (byKey === 'no') return ignored(why, policy)
  if (byContent !== 'no')
    return sure('by content', `${why}: it is known by its content, under any key`, {
      assumed,
      differs: true,
      set: [hold('two records of the same content count as one: a second is no failure to send')],
      cannot: byKey === 'other' ? refusedRepeat : null,
    })
  if (byKey === 'other')
    return sure(`refused with ${nameOf(again.answer)}`, why, {
      assumed,
      differs: true,
      set: [hold('what was sent twice is refused without E002')],
      cannot: refusedRepeat,
    })
  const resend = {
    variable: 'UNCERTAIN_POLICY',
    value: 'resend',
    why:
      byKey === 'same id'
        ? 'a request that is sent again under its key gets the first answer'
        : 'a request that arrived is E002 when it is sent again, and stored once',
  }
  return sure(byKey === 'same id' ? 'replay' : 'e002', why, { assumed, differs: policy === 'hold', set: [resend] })
}

const refusedRepeat =
  'a repetition is refused without E002: after an attempt in doubt the daemon cannot tell a record that arrived from one that is wrong'

const hold = (why: string) => ({ variable: 'UNCERTAIN_POLICY', value: 'hold', why })

function ignored(why: string, policy: Policy): Finding {
  const assumed = policy === 'resend' ? 'recognised, as UNCERTAIN_POLICY=resend says' : 'ignored'
  return sure('ignored', `${why}: two transactions`, {
    assumed,
    differs: policy === 'resend',
    set: [hold('the service does not know a request again: whatever is sent twice is there twice')],
  })
}
