COPY plan (name, price) FROM STDIN;
free	0
größer	49.50
\.

INSERT INTO tenant (name, plan) VALUES ('first', 'free'), ('second', 'größer'), ('third', 'free');

COPY account (tenant_id, id, mail, balance) FROM STDIN;
1	1	a@first	0
1	2	b@first	10.5
2	1	a;b@second	0
3	1	c@third	-1
\.
