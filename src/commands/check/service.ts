import { systemClock } from '../../clock.ts'
import type { Config, Credentials } from '../../config.ts'
import { ServiceMismatch } from '../../ledger/binding.ts'
import { firstMappedResource, loadMappings } from '../../mapping/loadMappings.ts'
import type { Answer } from '../../model/service.ts'
import {
  BudgetUnknown,
  requestWaitMaxMs,
  type SpendRequest,
  withBudgetedServiceClient,
} from '../../operations/askForTransaction.ts'
import { standbyAwaitedMessage } from '../../operations/databaseMessages.ts'
import { findEarliestExpiryEpochMs } from '../../pem.ts'
import { type Resource, resourceNames } from '../../resources.ts'
import type { ServiceClient } from '../../service/client.ts'
import {
  createHarmlessRequest,
  describeAnswer,
  findPauseForGetAnswer,
  isSameAnswerExceptIds,
  readPauseFromTokenAnswer,
} from '../../service/readAnswer.ts'
import { isServiceErrorCode } from '../../service/responses.ts'
import { formatDuration } from '../../time.ts'
import {
  type CertificateExpiry,
  type ClocksAndCertificates,
  type Finding,
  makeFinding,
  makeUncheckedFinding,
} from './finding.ts'
import { clockReadingsFromDateHeader } from './servers.ts'

/**
 * Requests a token and an unknown transaction. If the answer is 404, also requests a path that cannot exist, to tell
 * the service from a proxy. If the ledger is unreadable, asks only with `askAnyway`.
 */
export async function checkService(
  config: Config,
  signal: AbortSignal,
  mayAskWithoutLedger: boolean,
  noticed: ClocksAndCertificates,
): Promise<Finding[]> {
  const resource = resourceOf(config)
  const shown: CertificateExpiry[] = []
  const options = {
    ...{ signal, mayAskWithoutLedger, goesFirst: true },
    onWait() {},
    onCertificate(expiresAtMs: number) {
      shown.splice(0, 1, { whose: 'the certificate of the service', expiresAtMs })
    },
  }
  try {
    const found = await withBudgetedServiceClient(config, options, (client, spend) =>
      ask(client, resource, spend, noticed),
    )
    noticed.certificates.push(...shown)
    return found
  } catch (error) {
    if (error instanceof ServiceMismatch) return [makeFinding(what, 'problem', error.message)]
    if (!(error instanceof BudgetUnknown)) throw error
    if (error.why === 'standby-awaited') return [makeFinding(what, 'problem', standbyAwaitedMessage)]
    const instead =
      error.why === 'history-differs' ? '' : '. `outboxd check --ask-anyway` makes the requests without the budget'
    return [makeUncheckedFinding(what, `${error.message}${instead}`)]
  }
}

const what = 'service'

const noneFree = `no request of the budget was free for ${formatDuration(requestWaitMaxMs)}, because a daemon or another client uses them all: see \`outboxd status\``

function resourceOf({ mappingsDir }: Config): Resource {
  try {
    return firstMappedResource(loadMappings(mappingsDir))
  } catch {
    return resourceNames[0]
  }
}

async function ask(
  client: ServiceClient,
  resource: Resource,
  spend: SpendRequest,
  { clocks }: Pick<ClocksAndCertificates, 'clocks'>,
): Promise<Finding[]> {
  const asked = await spend((mayLeave) => client.requestToken(mayLeave))
  if (asked === null) return [makeUncheckedFinding(what, noneFree)]
  const { answer, token } = asked
  if (token === null)
    return [
      makeFinding('token', 'problem', readPauseFromTokenAnswer(answer).detail),
      makeUncheckedFinding(what, 'there is no token'),
    ]
  const lifetime =
    token.lifetimeMs === null
      ? 'of unknown lifetime: check TOKEN_EXPIRES_IN_UNIT'
      : `valid for ${formatDuration(token.lifetimeMs)}`
  const granted = makeFinding('token', 'ok', `issued in ${Math.round(answer.tookMs)} ms, ${lifetime}`)
  const { accessToken } = token
  const call = await spend((mayLeave) => client.send(createHarmlessRequest(resource), accessToken, mayLeave))
  if (call === null) return [granted, makeUncheckedFinding(what, noneFree)]
  if (call.kind === 'response') clocks.push(...clockReadingsFromDateHeader(call, systemClock.nowMs()))
  const isUnclear = call.kind === 'response' && call.status === 404
  const otherPathAnswer = isUnclear ? await spend((mayLeave) => client.requestUnknownPath(accessToken, mayLeave)) : null
  return [granted, judgeUnknownTransactionAnswer(call, otherPathAnswer)]
}

/**
 * A 404 comes from the service if a path that cannot exist got a different answer.
 * @param otherPathAnswer null if not requested
 */
export function judgeUnknownTransactionAnswer(answer: Answer, otherPathAnswer: Answer | null): Finding {
  const problem = (message: string) => makeFinding(what, 'problem', message)
  const pause = findPauseForGetAnswer(answer)
  if (pause !== null) return problem(pause.detail)
  if (answer.kind === 'no-answer') return problem(`asked for a transaction: ${answer.detail}`)
  const summary = describeAnswer(answer)
  const { status, tookMs, rateRemaining } = answer
  if (status >= 500) return problem(summary)
  if (status !== 404 && status !== 400 && status !== 200)
    return problem(`${summary}; expected 404, because the transaction does not exist. Check SERVICE_BASE_URL`)
  if (isWebPage(answer)) return problem(`${summary}; ${webPageMessage}`)
  if (!isFromService(answer, otherPathAnswer)) return problem(`${summary}; ${foreignMessage}`)
  const left = rateRemaining === null ? '' : `; it says that ${rateRemaining} requests remain`
  return makeFinding(
    what,
    'ok',
    `accepts the token and answers (${status}${status === 404 ? ' as expected' : ''}, in ${Math.round(tookMs)} ms)${left}`,
  )
}

const foreignMessage =
  'this is not JSON of the service, or an impossible address gets the same answer, so the answer may be from a proxy. Check SERVICE_BASE_URL'

const webPageMessage =
  'this is a web page, not JSON of the service: a proxy or a maintenance page gives it, or SERVICE_BASE_URL is wrong'

type Response = Answer & { kind: 'response' }

const isWebPage = ({ excerpt }: Response) => /^\s*</.test(excerpt)

function isFromService(answer: Response, otherPathAnswer: Answer | null): boolean {
  const { status, code, json } = answer
  if (isServiceErrorCode(code)) return true
  if (status === 404 && canBeCompared(otherPathAnswer)) return !isSameAnswerExceptIds(answer, otherPathAnswer)
  return typeof json === 'object' && json !== null
}

/** False for an answer that asks to wait, or a server error, because the service gives such answers for any path. */
const canBeCompared = (otherPathAnswer: Answer | null): otherPathAnswer is Response =>
  otherPathAnswer?.kind === 'response' &&
  otherPathAnswer.status < 500 &&
  findPauseForGetAnswer(otherPathAnswer) === null

export function parseConfiguredCertificateExpiries({
  cert,
  ca,
}: Pick<Credentials, 'cert' | 'ca'>): CertificateExpiry[] {
  const ends = [
    { whose: 'our client certificate (SERVICE_CERT_FILE)', expiresAtMs: findEarliestExpiryEpochMs(cert) },
    { whose: 'the first certificate in SERVICE_CA_FILE', expiresAtMs: findEarliestExpiryEpochMs(ca) },
  ]
  return ends.flatMap(({ whose, expiresAtMs }) => (expiresAtMs === null ? [] : [{ whose, expiresAtMs }]))
}

const warnMs = 14 * 86_400_000

export function judgeCertificates(certificates: readonly CertificateExpiry[], nowMs: number): Finding[] {
  if (certificates.length === 0) return []
  const leftMs = Math.min(...certificates.map(({ expiresAtMs }) => expiresAtMs)) - nowMs
  const markOfValid = leftMs < warnMs ? 'warning' : 'ok'
  const mark = leftMs <= 0 ? 'problem' : markOfValid
  const lines = certificates.map(({ whose, expiresAtMs }) => {
    const day = new Date(expiresAtMs).toISOString().slice(0, 10)
    return expiresAtMs <= nowMs
      ? `${whose} expired on ${day}`
      : `${whose} expires on ${day}, in ${formatDuration(expiresAtMs - nowMs)}`
  })
  const next = mark === 'ok' ? [] : ['Renew the certificate: see docs/run/runbook.md, OutboxdCertificateExpires']
  return [makeFinding('certificates', mark, ...lines, ...next)]
}
