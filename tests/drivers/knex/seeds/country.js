// The lookup table's rows; run again it changes nothing.
'use strict';

exports.seed = knex =>
  knex('country')
    .insert([
      { code: 'de', name: 'Germany' },
      { code: 'pe', name: 'Perú' },
      { code: 'jp', name: '日本' },
    ])
    .onConflict('code')
    .merge();
