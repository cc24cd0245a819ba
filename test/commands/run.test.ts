import { expect, test } from 'vitest'
import { command as run } from '../../src/commands/run.ts'
import { ConfigInvalid } from '../../src/createVariableReader.ts'
import { testContext } from '../support/context.ts'

test('run warns about a misspelt variable before it fails for missing ones', async () => {
  const context = testContext({ SERVICE_BAES_URL: 'https://service.example' })
  await expect(run.action(context)).rejects.toThrow(ConfigInvalid)
  expect(context.messages()).toBe(
    "outboxd: warning: the variable SERVICE_BAES_URL is not one of outboxd's; did you mean SERVICE_BASE_URL?\n",
  )
})
