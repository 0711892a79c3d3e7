// Runs tests one after another and writes how each ended, for programs of our own: `test(name, body)`, then `run()`.
'use strict';
const { deepStrictEqual } = require('assert');
const fs = require('fs');
const { inspect } = require('util');
const tests = [];
// One that hangs fails, and the next goes on.
const LIMIT = 60000;

exports.test = (name, body) => tests.push({ name, body });

// That two values are the same, with both in the message.
exports.same = (got, expected) => {
  const told = value => inspect(value, { depth: null, breakLength: Infinity });
  deepStrictEqual(got, expected, `got\n${told(got)}\nexpected\n${told(expected)}`);
};

exports.run = async () => {
  for (const { name, body } of tests) {
    let outcome = 'PASSED';
    let timer;
    try {
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not over after ${LIMIT} ms`)), LIMIT);
      });
      await Promise.race([body(), late]);
    } catch (e) {
      outcome = 'FAILED';
      // What an ORM has wrapped says more.
      const { code = '', message = '', detail = '', where = '' } = e.original || e;
      console.log(`--- ${name}\n${e.stack || e}\n${code} ${message} ${detail} ${where}\n${e.sql || ''}`);
    } finally {
      clearTimeout(timer);
    }
    fs.appendFileSync(process.env.DRIVERS_RESULTS, `${outcome} ${name}\n`);
  }
  // What a failed test has left open holds nothing up.
  process.exit(0);
};

process.on('unhandledRejection', e => console.log('--- nobody waited for:', e.stack || e));
process.on('uncaughtException', e => console.log('--- nobody caught:', e.stack || e));
