// The lookup table's rows.
'use strict';
const { Seeder } = require('@mikro-orm/seeder');

exports.Seed = class Seed extends Seeder {
  async run(em) {
    await em.upsertMany('Country', [
      { code: 'de', name: 'Germany' },
      { code: 'pe', name: 'Perú' },
    ]);
  }
};
