// Models out of the database, in a place of their own.
'use strict';

module.exports = { ...require('./drizzle.config'), out: './pulled' };
