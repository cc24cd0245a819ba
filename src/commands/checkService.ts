import { systemClock } from '../clock.ts'
import type { Config } from '../config.ts'
import { ForeignService } from '../ledger/servedService.ts'
import { loadMappings, usedResource } from '../mapping/loadMappings.ts'
import type { Answer } from '../model.ts'
import { slotsWithinMs, withBorrowedClient } from '../operations/askForTransaction.ts'
import { type Resource, resourceNames } from '../resources.ts'
import type { ServiceClient } from '../service/client.ts'
import { isServiceCode } from '../service/errorCode.ts'
import { decideToken, describeAnswer, harmlessRequest, pauseCall, saysTheSame } from '../service/readAnswer.ts'
import { showDuration } from '../time.ts'
import type { CertificateEnd } from './checkCertificates.ts'
import { type ClockReading, serviceClock } from './checkClocks.ts'
import { type Finding, notAsked } from './finding.ts'

/**
 * Asks for a token and makes one harmless call, each a finding, and where it is answered 404 another
 * to compare with. Spends slots where there is a budget to take them from; where nobody can know what a daemon has spent it
 * asks only if told so.
 */
export async function checkService(config: Config, signal: AbortSignal, askAnyway: boolean): Promise<ServiceSeen> {
  const resource = resourceOf(config)
  const shown: CertificateEnd[] = []
  const asked = await withBorrowedClient(config, {
    signal,
    askAnyway,
    onWait() {},
    requestsMax: 3,
    onCertificate(endsMs) {
      shown.splice(0, 1, { whose: 'that of the service', endsMs })
    },
    ask: (client, mayLeave, requests) => ask(client, resource, mayLeave, requests),
  }).catch((error: unknown) => {
    if (error instanceof ForeignService) return { kind: 'foreign', message: error.message } as const
    throw error
  })
  switch (asked.kind) {
    case 'asked':
      return { ...asked.result, certificates: shown }
    case 'foreign':
      return { findings: [{ what: 'service', mark: 'problem', message: asked.message }], clocks: [], certificates: [] }
    case 'none-free':
      return unseen(noneFree)
    case 'unknown':
      return unseen(unknown(asked.readOnly))
    default:
      return asked satisfies never
  }
}

/** What the service shows of itself. */
export interface ServiceSeen {
  findings: Finding[]
  clocks: ClockReading[]
  certificates: CertificateEnd[]
}

const unseen = (why: string): ServiceSeen => ({ findings: [notAsked('service', why)], clocks: [], certificates: [] })

const noneFree = `no slot of the budget was free for ${showDuration(slotsWithinMs)}: a daemon spends them, so see outboxd status`
const unknown = (readOnly: boolean) =>
  `the ledger cannot be ${readOnly ? 'written, so no slot can be taken for it' : 'read, so nobody knows what a daemon has spent'}; outboxd check --ask-anyway asks nevertheless`
const tooLate = 'the slot’s time had run out before the request could leave: run outboxd check again'

/** Where the mappings are broken, which is a finding of its own, the first resource is asked. */
function resourceOf({ mappingsDir }: Config): Resource {
  try {
    return usedResource(loadMappings(mappingsDir))
  } catch {
    return resourceNames[0]
  }
}

async function ask(
  client: ServiceClient,
  resource: Resource,
  mayLeave: () => boolean,
  requests: number,
): Promise<Omit<ServiceSeen, 'certificates'>> {
  const asked = await client.requestToken(mayLeave)
  if (asked === null) return unseen(tooLate)
  const { answer, token } = asked
  if (token === null)
    return {
      findings: [
        { what: 'token', mark: 'problem', message: decideToken(answer).detail },
        notAsked('service', 'there is no token'),
      ],
      clocks: [],
    }
  const lifetime =
    token.lifetimeMs === null
      ? 'which does not say how long it lasts (TOKEN_EXPIRES_IN_UNIT?)'
      : `good for ${showDuration(token.lifetimeMs)}`
  const granted = `the issuer gave one, ${lifetime}, in ${Math.round(answer.tookMs)} ms`
  const call = await client.send(harmlessRequest(resource), token.accessToken, mayLeave)
  const clocks = call?.kind === 'response' ? serviceClock(call, systemClock.nowMs()) : []
  const found: Finding = { what: 'token', mark: 'ok', message: granted }
  if (call === null) return { findings: [found, notAsked('service', tooLate)], clocks }
  const isUnclear = call.kind === 'response' && call.status === 404 && requests > 2
  const beside = isUnclear ? await client.askBeside(token.accessToken, mayLeave) : null
  return { findings: [found, interpretCall(call, beside)], clocks }
}

/**
 * What the answer to a question about nothing says. The transaction does not exist: whoever says so, and answers
 * otherwise where nothing is served, knows the API, whatever the words. Without a comparison whatever says so in the manner of
 * a service is as good as a success, and we cannot tell whose a 404 without a word is.
 *
 * @param beside the answer to a question for an address that cannot exist; null where it was not asked
 */
export function interpretCall(answer: Answer, beside: Answer | null): Finding {
  const what = 'service'
  const pause = pauseCall(answer)
  if (pause !== null) return { what, mark: 'problem', message: pause.detail }
  if (answer.kind === 'no-answer')
    return { what, mark: 'problem', message: `asked for a transaction: ${answer.detail}` }
  const summary = describeAnswer(answer)
  const { status, tookMs, rateRemaining } = answer
  if (status >= 500) return { what, mark: 'problem', message: summary }
  if (status !== 404 && status !== 400 && status !== 200)
    return {
      what,
      mark: 'problem',
      message: `${summary}; expected 404, as the transaction does not exist: look at SERVICE_BASE_URL`,
    }
  const doubt = foreign(answer, beside)
  if (doubt !== null) return { what, mark: 'problem', message: `${summary}; ${doubt}` }
  const left = rateRemaining === null ? '' : `; it says that ${rateRemaining} requests remain`
  return { what, mark: 'ok', message: `it takes our token and answers (${status} in ${Math.round(tookMs)} ms)${left}` }
}

type Response = Answer & { kind: 'response' }

/** Why an answer may not be the service's own; null where it is. */
function foreign(answer: Response, beside: Answer | null): string | null {
  const { status, code, json, excerpt } = answer
  if (/^\s*</.test(excerpt))
    return 'that is a page, as an ingress or a proxy answers, and no JSON: look at SERVICE_BASE_URL, or ask the operator of the service whether it is up'
  if (isServiceCode(code)) return null
  if (status === 404 && canBeCompared(beside))
    return saysTheSame(answer, beside)
      ? 'and it says the same of an address that cannot exist, as an ingress does that knows neither: look at SERVICE_BASE_URL. If that is right, the first record will show it, and loses nothing'
      : null
  if (typeof json === 'object' && json !== null) return null
  return 'we cannot tell whether the service says so, or something before it that knows no such address: look at SERVICE_BASE_URL. The first record will show it, and loses nothing'
}

/** What stands in everybody's way, or is a moment's trouble, tells nothing of an address. */
const canBeCompared = (beside: Answer | null): beside is Response =>
  beside?.kind === 'response' && beside.status < 500 && pauseCall(beside) === null
