-- Asks a server whose encoding is UTF8 how it converts another one, character by character, in one statement and
-- without a trace in its log. What it finds is left in the setting pgherd.learned, a line for each finding, all in hex:
--   c START BYTES,BYTES,…    characters in a row, and their bytes
--   p START BYTES            a whole plane, both ways
--   b PREFIX LAST TEXT,TEXT,…  bytes in a row by their last byte, and what they are in UTF-8
DO $learn$
DECLARE
    other CONSTANT name := 'ENCODING';
    learned text[] := '{}';
    texts text;
    bytes bytea;
    found text;
    hit boolean;
    singles int[] := '{}';
    prefix text;
    begins int;
    ends int;
    at int;
BEGIN
    FOR plane IN 0..16 LOOP
        -- All characters of planes 0 and 2 are tried. The others have none, or (GB18030) all.
        IF plane > 0 THEN
            hit := plane = 2;
            FOR i IN 0..255 LOOP
                EXIT WHEN hit;
                BEGIN
                    PERFORM convert_to(chr(plane * 65536 + i * 256 + i), other);
                    hit := true;
                EXCEPTION WHEN untranslatable_character THEN
                END;
            END LOOP;
            CONTINUE WHEN NOT hit;
            BEGIN
                begins := plane * 65536;
                texts := (SELECT string_agg(chr(c), '' ORDER BY c) FROM generate_series(begins, begins + 65535) c);
                bytes := convert_to(texts, other);
                IF convert_from(bytes, other) = texts THEN
                    learned := learned || format('p %s %s', to_hex(begins), encode(bytes, 'hex'));
                    CONTINUE;
                END IF;
            EXCEPTION WHEN untranslatable_character THEN
            END;
        END IF;
        begins := plane * 65536 + CASE plane WHEN 0 THEN 128 ELSE 0 END;
        WHILE begins < (plane + 1) * 65536 LOOP
            IF begins = 55296 THEN
                -- Surrogates are no characters.
                begins := 57344;
            END IF;
            BEGIN
                found := (
                    SELECT string_agg(encode(convert_to(chr(c), other), 'hex'), ',' ORDER BY c)
                    FROM generate_series(begins, begins + 31) c
                );
                learned := learned || format('c %s %s', to_hex(begins), found);
            EXCEPTION WHEN untranslatable_character THEN
                FOR c IN begins..begins + 31 LOOP
                    BEGIN
                        found := encode(convert_to(chr(c), other), 'hex');
                        learned := learned || format('c %s %s', to_hex(c), found);
                    EXCEPTION WHEN untranslatable_character THEN
                    END;
                END LOOP;
            END;
            begins := begins + 32;
        END LOOP;
    END LOOP;

    FOR one IN 128..255 LOOP
        BEGIN
            found := encode(convert_to(convert_from(set_byte(E'\\x00', 0, one), other), 'UTF8'), 'hex');
            learned := learned || format('b - %s %s', to_hex(one), found);
            singles := singles || one;
        EXCEPTION WHEN untranslatable_character OR character_not_in_repertoire THEN
        END;
    END LOOP;

    -- All but the last byte of two, of three (EUC_JP, EUC_JIS_2004), and of four (EUC_TW; GB18030, whose characters
    -- behind those of plane 0 are known from the planes).
    FOR prefix, begins, ends, hit IN
        SELECT to_hex(a), 48, 255, true FROM generate_series(128, 255) a WHERE a <> ALL (singles)
        UNION ALL
        SELECT '8f' || to_hex(a), 161, 254, other LIKE E'EUC\\_J%' FROM generate_series(161, 254) a
        UNION ALL
        SELECT '8e' || to_hex(a) || to_hex(b), 161, 254, other = 'EUC_TW'
        FROM generate_series(161, 176) a, generate_series(161, 254) b
        UNION ALL
        SELECT to_hex(a) || to_hex(b) || to_hex(c), 48, 57, other = 'GB18030'
        FROM generate_series(129, 132) a, generate_series(48, 57) b, generate_series(129, 254) c
    LOOP
        CONTINUE WHEN NOT hit;
        at := begins;
        WHILE at <= ends LOOP
            BEGIN
                found := (
                    SELECT string_agg(
                        encode(convert_to(convert_from(decode(prefix || to_hex(final), 'hex'), other), 'UTF8'), 'hex'),
                        ',' ORDER BY final
                    )
                    FROM generate_series(at, least(at + 15, ends)) final
                );
                learned := learned || format('b %s %s %s', prefix, to_hex(at), found);
            EXCEPTION WHEN untranslatable_character OR character_not_in_repertoire THEN
                FOR final IN at..least(at + 15, ends) LOOP
                    BEGIN
                        found := encode(
                            convert_to(convert_from(decode(prefix || to_hex(final), 'hex'), other), 'UTF8'), 'hex'
                        );
                        learned := learned || format('b %s %s %s', prefix, to_hex(final), found);
                    EXCEPTION WHEN untranslatable_character OR character_not_in_repertoire THEN
                    END;
                END LOOP;
            END;
            at := at + 16;
        END LOOP;
    END LOOP;
    PERFORM set_config('pgherd.learned', array_to_string(learned, E'\n'), false);
END
$learn$
