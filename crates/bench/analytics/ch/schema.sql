-- The twelve tables of CH-benCHmark: nine of TPC-C and three of TPC-H. Keys and indexes are made after the rows, by the
-- layout (src/analytics/layout.rs).

DROP SCHEMA IF EXISTS ch CASCADE;
CREATE SCHEMA ch;
SET search_path = ch;

CREATE TABLE region (r_regionkey int NOT NULL, r_name text NOT NULL, r_comment text);

CREATE TABLE nation (
    n_nationkey int NOT NULL, n_name text NOT NULL, n_regionkey int NOT NULL, n_comment text);

CREATE TABLE supplier (
    su_suppkey int NOT NULL, su_name text NOT NULL, su_address text NOT NULL, su_nationkey int NOT NULL,
    su_phone text NOT NULL, su_acctbal numeric(12, 2) NOT NULL, su_comment text NOT NULL);

CREATE TABLE item (
    i_id int NOT NULL, i_im_id int NOT NULL, i_name text NOT NULL, i_price numeric(5, 2) NOT NULL,
    i_data text NOT NULL);

CREATE TABLE warehouse (
    w_id int NOT NULL, w_name text, w_street_1 text, w_street_2 text, w_city text, w_state text, w_zip text,
    w_tax numeric(4, 4), w_ytd numeric(12, 2));

CREATE TABLE district (
    d_id int NOT NULL, d_w_id int NOT NULL, d_name text, d_street_1 text, d_street_2 text, d_city text, d_state text,
    d_zip text, d_tax numeric(4, 4), d_ytd numeric(12, 2), d_next_o_id int);

CREATE TABLE customer (
    c_id int NOT NULL, c_d_id int NOT NULL, c_w_id int NOT NULL, c_first text, c_middle text, c_last text,
    c_street_1 text, c_street_2 text, c_city text, c_state text, c_zip text, c_phone text, c_since timestamp,
    c_credit text, c_credit_lim numeric(12, 2), c_discount numeric(4, 4), c_balance numeric(12, 2),
    c_ytd_payment numeric(12, 2), c_payment_cnt int, c_delivery_cnt int, c_data text);

CREATE TABLE history (
    h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int NOT NULL, h_date timestamp, h_amount numeric(6, 2),
    h_data text);

CREATE TABLE orders (
    o_id int NOT NULL, o_d_id int NOT NULL, o_w_id int NOT NULL, o_c_id int, o_entry_d timestamp, o_carrier_id int,
    o_ol_cnt int, o_all_local int);

CREATE TABLE neworder (no_o_id int NOT NULL, no_d_id int NOT NULL, no_w_id int NOT NULL);

CREATE TABLE orderline (
    ol_o_id int NOT NULL, ol_d_id int NOT NULL, ol_w_id int NOT NULL, ol_number int NOT NULL, ol_i_id int,
    ol_supply_w_id int, ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6, 2), ol_dist_info text);

CREATE TABLE stock (
    s_i_id int NOT NULL, s_w_id int NOT NULL, s_quantity int, s_dist_01 text, s_dist_02 text, s_dist_03 text,
    s_dist_04 text, s_dist_05 text, s_dist_06 text, s_dist_07 text, s_dist_08 text, s_dist_09 text, s_dist_10 text,
    s_ytd numeric(8, 0), s_order_cnt int, s_remote_cnt int, s_data text);
