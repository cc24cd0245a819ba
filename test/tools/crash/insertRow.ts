import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import pg from 'pg'

// The program that statements.test.ts strikes. With the argument `waits`, it begins when its strike is planned.
const client = new pg.Client(process.env.DATABASE_URL)
await client.connect()
console.log('connected')
if (process.argv.includes('waits')) await once(process, 'SIGUSR2')
await client.query('begin')
await client.query(`insert into row values (1) /* ${randomUUID()} */`)
await client.query('commit')
console.log('committed')
await client.end()
