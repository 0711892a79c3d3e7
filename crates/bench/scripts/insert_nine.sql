-- Nine rows, each in another shard: k1 to k9 are keys that the benchmark has chosen so.
\set v random(1, 1000000)
INSERT INTO insert_nine (k, v, info) VALUES
    (:k1, :v, 'one'), (:k2, :v, 'two'), (:k3, :v, 'three'),
    (:k4, :v, 'four'), (:k5, :v, 'five'), (:k6, :v, 'six'),
    (:k7, :v, 'seven'), (:k8, :v, 'eight'), (:k9, :v, 'nine');
