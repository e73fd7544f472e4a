SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA then_0_1;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE then_0_1.chain (
    one integer NOT NULL,
    seq bigint NOT NULL,
    hash text NOT NULL,
    writes bigint DEFAULT 0 NOT NULL,
    CONSTRAINT chain_one_check CHECK ((one = 1))
)
WITH (fillfactor='10');
CREATE TABLE then_0_1.checkpoints (
    nr bigint NOT NULL,
    seq bigint NOT NULL,
    hash text NOT NULL,
    at text NOT NULL,
    key text NOT NULL,
    signature text NOT NULL
);
ALTER TABLE then_0_1.checkpoints ALTER COLUMN nr ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME then_0_1.checkpoints_nr_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE then_0_1.claims (
    request text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL,
    claimed_at bigint NOT NULL,
    claim text NOT NULL
);
CREATE TABLE then_0_1.decisions (
    request text NOT NULL COLLATE pg_catalog."C",
    ending text NOT NULL,
    decided_at bigint,
    decision text NOT NULL
);
CREATE TABLE then_0_1.delegations (
    nr bigint NOT NULL,
    since bigint NOT NULL,
    until bigint NOT NULL,
    body text NOT NULL
);
ALTER TABLE then_0_1.delegations ALTER COLUMN nr ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME then_0_1.delegations_nr_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE then_0_1.deliveries (
    nr bigint NOT NULL,
    channel text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    trail text NOT NULL COLLATE pg_catalog."C",
    request text NOT NULL COLLATE pg_catalog."C",
    live integer NOT NULL,
    body text NOT NULL
);
ALTER TABLE then_0_1.deliveries ALTER COLUMN nr ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME then_0_1.deliveries_nr_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE then_0_1.events (
    seq bigint NOT NULL,
    at text NOT NULL,
    kind text NOT NULL,
    request text NOT NULL COLLATE pg_catalog."C",
    run text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    prev text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE then_0_1.grants (
    nr bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    memory_key text NOT NULL COLLATE pg_catalog."C",
    revoked integer NOT NULL,
    body text NOT NULL
);
ALTER TABLE then_0_1.grants ALTER COLUMN nr ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME then_0_1.grants_nr_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE then_0_1.processes (
    id text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL
);
CREATE TABLE then_0_1.requests (
    nr bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    state text NOT NULL,
    opened_at bigint NOT NULL,
    deadline bigint,
    remind_at bigint,
    escalated integer NOT NULL,
    assigned text NOT NULL,
    votes integer NOT NULL,
    title text NOT NULL,
    tool text NOT NULL,
    worker text NOT NULL,
    role text NOT NULL,
    quorum integer NOT NULL,
    run text NOT NULL COLLATE pg_catalog."C",
    conversation text NOT NULL COLLATE pg_catalog."C",
    call_key text NOT NULL COLLATE pg_catalog."C",
    question text NOT NULL
);
ALTER TABLE then_0_1.requests ALTER COLUMN nr ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME then_0_1.requests_nr_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE then_0_1.results (
    request text NOT NULL COLLATE pg_catalog."C",
    result bytea NOT NULL
);
CREATE TABLE then_0_1.runs (
    nr bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    body text NOT NULL
);
ALTER TABLE then_0_1.runs ALTER COLUMN nr ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME then_0_1.runs_nr_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE then_0_1.schema_version (
    number integer NOT NULL,
    name text NOT NULL,
    applied_at text NOT NULL
);
CREATE TABLE then_0_1.segments (
    nr bigint NOT NULL,
    id bytea NOT NULL,
    parent bytea,
    messages integer NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE then_0_1.segments ALTER COLUMN nr ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME then_0_1.segments_nr_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE then_0_1.settings (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL
);
CREATE TABLE then_0_1.votes (
    request text NOT NULL COLLATE pg_catalog."C",
    place integer NOT NULL,
    person text NOT NULL,
    vote text NOT NULL
);
INSERT INTO then_0_1.chain VALUES (1, 37, '9d0d743741865b6734dc6236b46a164d1032938ab905fd2eea9e64efb03e355d', 36);
INSERT INTO then_0_1.checkpoints OVERRIDING SYSTEM VALUE VALUES (1, 11, '87594353a916757c9536489f4869d1f36440347d7a4071f53acac6cf26ee5656', '2026-11-16T16:24:51.695247Z', 'ff3e2d3d4e351c68280f7051d9b0b7cc90a58dadb18819783478cd67d828728b', '8d50df08682f0947575c735e178ec98be1999d9ec8bc5522c3101c520ebc8f0e1861da0943d790a875942ad990264a147f0a51d6b21c36b3e7d0596ee843860f');
INSERT INTO then_0_1.claims VALUES ('ugkpwbvkc6', 'kzvf96udfd', 1794846291832135, '{"holder":"kzvf96udfd","at":"2026-11-16T16:24:51.832135+00:00","token":"ubn5d9vcm9","ended_at":"2026-11-16T16:24:51.841596+00:00","digest":"78a9b5600290814e24652b2f0e9397c7ff18dd0d15b8edada584cf272d4fcd94","preview":"paid 2"}');
INSERT INTO then_0_1.decisions VALUES ('ugkpwbvkc6', 'approved', 1794846291804294, '{"approved":true,"remember":"always","ending":"approved","by":{"name":"ana","roles":["ops"]},"at":"2026-11-16T16:24:51.804294+00:00"}');
INSERT INTO then_0_1.decisions VALUES ('qzzq6upg8m', 'approved', 1794846291909843, '{"approved":true,"note":"fine","ending":"approved","by":{"name":"ana","roles":["ops"]},"at":"2026-11-16T16:24:51.909843+00:00"}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (1, 'board', 'ntyzmfqmc8', '58tdpvs9tp', 'ntyzmfqmc8', 1, '{"channel":"board","subject":"ntyzmfqmc8","trail":"58tdpvs9tp","request":"ntyzmfqmc8","state":"shown","at":"board/1","shown":1}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (2, 'board', '9xz9ynxh9y', 'jkksv99ghf', '9xz9ynxh9y', 1, '{"channel":"board","subject":"9xz9ynxh9y","trail":"jkksv99ghf","request":"9xz9ynxh9y","state":"shown","at":"board/2","shown":1}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (9, 'board', '72y45x432r', '58tdpvs9tp', '72y45x432r', 1, '{"channel":"board","subject":"72y45x432r","trail":"58tdpvs9tp","request":"72y45x432r","state":"shown","at":"board/5","shown":1}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (11, 'board', 'all:ntyzmfqmc8', '58tdpvs9tp', '', 1, '{"channel":"board","subject":"all:ntyzmfqmc8","trail":"58tdpvs9tp","state":"shown","at":"board/6","shown":2}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (3, 'board', 'ugkpwbvkc6', 'e43fqb7rza', 'ugkpwbvkc6', 0, '{"channel":"board","subject":"ugkpwbvkc6","trail":"e43fqb7rza","request":"ugkpwbvkc6","state":"shown","at":"board/3","shown":4,"live":false}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (13, 'board', 'said:e43fqb7rza', 'e43fqb7rza', '', 0, '{"channel":"board","subject":"said:e43fqb7rza","trail":"e43fqb7rza","state":"shown","at":"board/7","shown":0,"live":false,"text":"{\"state\": \"done\", \"worker\": \"shop\", \"text\": \"looked 1 paid 2\"}"}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (16, 'board', 'mkqa3cmc3b', 'utnqbpwjn2', 'mkqa3cmc3b', 1, '{"channel":"board","subject":"mkqa3cmc3b","trail":"utnqbpwjn2","request":"mkqa3cmc3b","attempts":1,"since":"2026-11-16T16:24:51.959966+00:00","next_at":"2026-11-16T16:24:52.959966+00:00","problem":"not now"}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (17, 'board', '9kpqq23pq8', 'rqa4jhd9cz', '9kpqq23pq8', 1, '{"channel":"board","subject":"9kpqq23pq8","trail":"rqa4jhd9cz","request":"9kpqq23pq8","state":"failed","attempts":1,"since":"2026-11-16T16:24:51.960005+00:00","problem":"too long","instead":"night","text":"[\"hopeless\"]"}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (20, 'night', '9kpqq23pq8', 'rqa4jhd9cz', '9kpqq23pq8', 1, '{"channel":"night","subject":"9kpqq23pq8","trail":"rqa4jhd9cz","request":"9kpqq23pq8","state":"shown","at":"night/1","shown":0}');
INSERT INTO then_0_1.deliveries OVERRIDING SYSTEM VALUE VALUES (4, 'board', '38vzd5ydgq', '52b9fjxmjy', '38vzd5ydgq', 1, '{"channel":"board","subject":"38vzd5ydgq","trail":"52b9fjxmjy","request":"38vzd5ydgq","at":"board/4","text":"[\"may stand\"]"}');
INSERT INTO then_0_1.events VALUES (1, '2026-11-16T16:24:51.596041Z', 'run started', '', '58tdpvs9tp', '{"agent":"","requester":""}', '0000000000000000000000000000000000000000000000000000000000000000', '8138cb1d29c6c4f5ba579db9309c9c80f301299ec6233e1071ea965ecfd69168');
INSERT INTO then_0_1.events VALUES (2, '2026-11-16T16:24:51.596041Z', 'asked', 'ntyzmfqmc8', '58tdpvs9tp', '{"args":{"amount":5},"args_digest":"7e84cbf0f7a7c92c037058665d66152f8eb8580ab2534e52c877bccceb9cc7bf","call":"01a1e52c-f530-752a-8c15-bb45524f796c.1794846291.320891:pay=5 refund=7-pay","conversation":"01a1e52c-f530-752a-8c15-bb46bb6fdde5","needs":"a person","policy":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","reason":"the policy asks about `pay`","rules":["rule-1"],"schema":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","title":"pay(amount=5)","tool":"pay","verdict":"ask","worker":["shop"]}', '8138cb1d29c6c4f5ba579db9309c9c80f301299ec6233e1071ea965ecfd69168', 'c591cc5164fade4bfdb53273a5c2eb4f4adfc621363142b51a4eb907ad112ffb');
INSERT INTO then_0_1.events VALUES (3, '2026-11-16T16:24:51.596041Z', 'asked', '72y45x432r', '58tdpvs9tp', '{"args":{"amount":7},"args_digest":"fb6632bd6651ff35747457d7d6aab3f5d91ff8521f5a79f7382c412da5ef081b","call":"01a1e52c-f530-752a-8c15-bb45524f796c.1794846291.320891:pay=5 refund=7-refund","conversation":"01a1e52c-f530-752a-8c15-bb46bb6fdde5","needs":"somebody with the role ''ops''","policy":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","reason":"the policy asks about `refund`","rules":["rule-2"],"schema":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","title":"refund(amount=7)","tool":"refund","verdict":"ask","worker":["shop"]}', 'c591cc5164fade4bfdb53273a5c2eb4f4adfc621363142b51a4eb907ad112ffb', '1845db78e8cf223269706be05a245e90e54475f89415c4a306112ab5a4b33440');
INSERT INTO then_0_1.events VALUES (4, '2026-11-16T16:24:51.632275Z', 'run started', '', 'jkksv99ghf', '{"agent":"","requester":""}', '1845db78e8cf223269706be05a245e90e54475f89415c4a306112ab5a4b33440', 'd3aca13b9a9359add47b6c6337bec77869109f1bd2be765c9374617da72d95c0');
INSERT INTO then_0_1.events VALUES (5, '2026-11-16T16:24:51.632275Z', 'asked', '9xz9ynxh9y', 'jkksv99ghf', '{"args":{"amount":3},"args_digest":"6d47010e407ddba47d8460e9c3984e515309fd15eaf15d2505e76cbd213df915","call":"01a1e52c-f6a2-7321-80b7-ca2fea8566cf.1794846291.626348:refund=3-refund","conversation":"01a1e52c-f6a2-7321-80b7-ca30cd99bbaf","needs":"somebody with the role ''ops''","policy":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","reason":"the policy asks about `refund`","rules":["rule-2"],"schema":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","title":"refund(amount=3)","tool":"refund","verdict":"ask","worker":["shop"]}', 'd3aca13b9a9359add47b6c6337bec77869109f1bd2be765c9374617da72d95c0', 'c99d3c544bda6c90a22ffc333643934a919b6a5466aa461bf0a0521ce77e6b80');
INSERT INTO then_0_1.events VALUES (6, '2026-11-16T16:24:51.648000Z', 'allowed', '', 'e43fqb7rza', '{"args":{"amount":1},"conversation":"01a1e52c-f6b8-7575-b82d-11a905d4362c","reason":"the policy allows `look`","rules":["rule-3"],"tool":"look","verdict":"allow","worker":["shop"]}', 'c99d3c544bda6c90a22ffc333643934a919b6a5466aa461bf0a0521ce77e6b80', '838fdf2025ab56d95210dfc49d5298022160f7237d02295c84936c4b212f93b0');
INSERT INTO then_0_1.events VALUES (7, '2026-11-16T16:24:51.649460Z', 'ran', '', 'e43fqb7rza', '{"args":{"amount":1},"conversation":"01a1e52c-f6b8-7575-b82d-11a905d4362c","reason":"the policy allows `look`","rules":["rule-3"],"tool":"look","verdict":"allow","worker":["shop"]}', '838fdf2025ab56d95210dfc49d5298022160f7237d02295c84936c4b212f93b0', '54f7c4d376f43fb96b6bce7c105534d6211e88d6d70fde16d5663e3617396e2e');
INSERT INTO then_0_1.events VALUES (8, '2026-11-16T16:24:51.653274Z', 'run started', '', 'e43fqb7rza', '{"agent":"","requester":""}', '54f7c4d376f43fb96b6bce7c105534d6211e88d6d70fde16d5663e3617396e2e', '2f9cf593932c592e10eaf50e2b6f513a39804ba0963f79a2b2b597241fe53795');
INSERT INTO then_0_1.events VALUES (9, '2026-11-16T16:24:51.653274Z', 'asked', 'ugkpwbvkc6', 'e43fqb7rza', '{"args":{"amount":2},"args_digest":"a2879a37ea1e0b8938f44d782c2ff3887f30554da489efc8634d658a95a1094d","call":"01a1e52c-f6b8-7575-b82d-11a8a0adaea7.1794846291.646021:look=1 pay=2-pay","conversation":"01a1e52c-f6b8-7575-b82d-11a905d4362c","needs":"a person","policy":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","reason":"the policy asks about `pay`","rules":["rule-1"],"schema":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","title":"pay(amount=2)","tool":"pay","verdict":"ask","worker":["shop"]}', '2f9cf593932c592e10eaf50e2b6f513a39804ba0963f79a2b2b597241fe53795', '6e6025915fa748d461720757ba50a532c6c6a3a25d8002f59cd5b86cd56cfd40');
INSERT INTO then_0_1.events VALUES (10, '2026-11-16T16:24:51.678266Z', 'run started', '', '52b9fjxmjy', '{"agent":"","requester":""}', '6e6025915fa748d461720757ba50a532c6c6a3a25d8002f59cd5b86cd56cfd40', '3f532d39407e6bab173eb374ee1fb3cc86c24cdd646815a0df32fd0c5caa0eee');
INSERT INTO then_0_1.events VALUES (11, '2026-11-16T16:24:51.678266Z', 'asked', '38vzd5ydgq', '52b9fjxmjy', '{"args":{"amount":4},"args_digest":"3f5e2fc00aa466f0983fe194e1a11594358bc888f4609c7ac82e3409c7cb750b","call":"01a1e52c-f6d1-77c7-ae74-de55b3a3d3ee.1794846291.671500:pay=4-pay","conversation":"01a1e52c-f6d1-77c7-ae74-de56858c13fc","needs":"a person","policy":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","reason":"the policy asks about `pay`","rules":["rule-1"],"schema":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","title":"pay(amount=4)","tool":"pay","verdict":"ask","worker":["shop"]}', '3f532d39407e6bab173eb374ee1fb3cc86c24cdd646815a0df32fd0c5caa0eee', '87594353a916757c9536489f4869d1f36440347d7a4071f53acac6cf26ee5656');
INSERT INTO then_0_1.events VALUES (12, '2026-11-16T16:24:51.758370Z', 'dated', 'ntyzmfqmc8', '58tdpvs9tp', '{"channel":"board","deadline":"2126-10-23T16:24:51.743673+00:00"}', '87594353a916757c9536489f4869d1f36440347d7a4071f53acac6cf26ee5656', '3d7a8bd30aac63ac9df6cc8f05d9b640b95f8ab327dca95e31834c254b717460');
INSERT INTO then_0_1.events VALUES (13, '2026-11-16T16:24:51.760212Z', 'dated', '9xz9ynxh9y', 'jkksv99ghf', '{"channel":"board","deadline":"2126-10-23T16:24:51.743726+00:00"}', '3d7a8bd30aac63ac9df6cc8f05d9b640b95f8ab327dca95e31834c254b717460', '982dbf369af0d2d021b5a545f7d347e13d6148b3cc330983a860e30af5d9f723');
INSERT INTO then_0_1.events VALUES (14, '2026-11-16T16:24:51.761764Z', 'dated', 'ugkpwbvkc6', 'e43fqb7rza', '{"channel":"board","deadline":"2126-10-23T16:24:51.743736+00:00"}', '982dbf369af0d2d021b5a545f7d347e13d6148b3cc330983a860e30af5d9f723', 'a29cb2e3df4f853311ef180fee0e9f3a1960aa12c7ac75557f30ba1bfa9d909d');
INSERT INTO then_0_1.events VALUES (15, '2026-11-16T16:24:51.762908Z', 'dated', '38vzd5ydgq', '52b9fjxmjy', '{"channel":"board","deadline":"2126-10-23T16:24:51.743745+00:00"}', 'a29cb2e3df4f853311ef180fee0e9f3a1960aa12c7ac75557f30ba1bfa9d909d', '5c816632dc27cc580d9be3dea5a854b0ffc6f23f03d7587b9bd1ad8dbb1006ee');
INSERT INTO then_0_1.events VALUES (16, '2026-11-16T16:24:51.768058Z', 'dated', '72y45x432r', '58tdpvs9tp', '{"channel":"board","deadline":"2126-10-23T16:24:51.764845+00:00"}', '5c816632dc27cc580d9be3dea5a854b0ffc6f23f03d7587b9bd1ad8dbb1006ee', '2b1a3feae3a2d4e320b3421f743bd70ffa78106fe59fb3bbd5bd0634829b79bb');
INSERT INTO then_0_1.events VALUES (17, '2026-11-16T16:24:51.796397Z', 'opened', '9xz9ynxh9y', 'jkksv99ghf', '{"args_digest":"6d47010e407ddba47d8460e9c3984e515309fd15eaf15d2505e76cbd213df915","by":"ana"}', '2b1a3feae3a2d4e320b3421f743bd70ffa78106fe59fb3bbd5bd0634829b79bb', '4577f8dbaacd4d66ad5261ff3f1e0d74a8bf7e80e7b5131ea17db7d7dcd48b76');
INSERT INTO then_0_1.events VALUES (18, '2026-11-16T16:24:51.799640Z', 'opened', '9xz9ynxh9y', 'jkksv99ghf', '{"args_digest":"6d47010e407ddba47d8460e9c3984e515309fd15eaf15d2505e76cbd213df915","by":"ben"}', '4577f8dbaacd4d66ad5261ff3f1e0d74a8bf7e80e7b5131ea17db7d7dcd48b76', '6c33b30d8b5eb06de0d6766a06315ca42fad4cd87c223fec0952868ee721f043');
INSERT INTO then_0_1.events VALUES (19, '2026-11-16T16:24:51.804294Z', 'voted', 'ugkpwbvkc6', 'e43fqb7rza', '{"approved":true,"args_digest":"a2879a37ea1e0b8938f44d782c2ff3887f30554da489efc8634d658a95a1094d","by":"ana","kind":"person","roles":["ops"]}', '6c33b30d8b5eb06de0d6766a06315ca42fad4cd87c223fec0952868ee721f043', '127558f2b34ce21225e5e0a1faabe50e7520477076620d52ed7d8089f976b3a2');
INSERT INTO then_0_1.events VALUES (20, '2026-11-16T16:24:51.804294Z', 'settled', 'ugkpwbvkc6', 'e43fqb7rza', '{"by":"ana","ending":"approved","kind":"person","roles":["ops"],"state":"approved"}', '127558f2b34ce21225e5e0a1faabe50e7520477076620d52ed7d8089f976b3a2', 'ee465233a8693402d967072ed32b12b4081f64fa62e35fa992fd85ab9c5de74f');
INSERT INTO then_0_1.events VALUES (21, '2026-11-16T16:24:51.804294Z', 'granted', '', '', '{"by":"ana","grant":"8hkrj6d6rf","text":"always pay, exactly as in: pay(amount=2) (arguments 93287192d7a9); anywhere in this project; while the tool is as it is (2c45d572e8d4)"}', 'ee465233a8693402d967072ed32b12b4081f64fa62e35fa992fd85ab9c5de74f', '55a4a97bac96e9a77edf22f79411dda559de2fd842f8d247d974168bb6517190');
INSERT INTO then_0_1.events VALUES (22, '2026-11-16T16:24:51.817518Z', 'run resumed', '', 'e43fqb7rza', '{"epoch":2}', '55a4a97bac96e9a77edf22f79411dda559de2fd842f8d247d974168bb6517190', '07a47dd26c0e7dc7c43ccd652d491ebfc0e2611671e9bd36baa1ee20e6d70e9a');
INSERT INTO then_0_1.events VALUES (23, '2026-11-16T16:24:51.832135Z', 'claimed', 'ugkpwbvkc6', 'e43fqb7rza', '{"process":"kzvf96udfd"}', '07a47dd26c0e7dc7c43ccd652d491ebfc0e2611671e9bd36baa1ee20e6d70e9a', '5a77112d424afd1ba9c71077be658f628ad4cabfe32c503d63e0c8f14bd3754a');
INSERT INTO then_0_1.events VALUES (24, '2026-11-16T16:24:51.841596Z', 'ran', 'ugkpwbvkc6', 'e43fqb7rza', '{"digest":"78a9b5600290814e24652b2f0e9397c7ff18dd0d15b8edada584cf272d4fcd94","preview":"paid 2"}', '5a77112d424afd1ba9c71077be658f628ad4cabfe32c503d63e0c8f14bd3754a', '50f45ca7cef0f3b525dcd8afa34ee006ad7a970709bdcbf1a77e590054975103');
INSERT INTO then_0_1.events VALUES (25, '2026-11-16T16:24:51.848277Z', 'run ended', '', 'e43fqb7rza', '{"detail":"looked 1 paid 2","state":"done"}', '50f45ca7cef0f3b525dcd8afa34ee006ad7a970709bdcbf1a77e590054975103', '8d6d9093af3ee76817780387e7af69717af505c43ee48dfe880374797ac1f439');
INSERT INTO then_0_1.events VALUES (26, '2026-11-16T16:24:51.903296Z', 'run started', '', 'rar2mhwva5', '{"agent":"","requester":""}', '8d6d9093af3ee76817780387e7af69717af505c43ee48dfe880374797ac1f439', '6e3814b957fdf03e0da06dd5d6e52c9c396732c619824190d224df39b984cb48');
INSERT INTO then_0_1.events VALUES (27, '2026-11-16T16:24:51.903296Z', 'asked', 'qzzq6upg8m', 'rar2mhwva5', '{"args":{"amount":9},"args_digest":"c54eaae48154f87c16278446393527c25853bffb11d8bb7a3b6ac57e6130f46b","call":"01a1e52c-f7ad-70a6-a3a5-55d374c37769.1794846291.898411:refund=9-refund","conversation":"01a1e52c-f7ad-70a6-a3a5-55d4de13e970","needs":"somebody with the role ''ops''","policy":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","reason":"the policy asks about `refund`","rules":["rule-2"],"schema":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","title":"refund(amount=9)","tool":"refund","verdict":"ask","worker":["shop"]}', '6e3814b957fdf03e0da06dd5d6e52c9c396732c619824190d224df39b984cb48', 'd006ea6c615d982d7c19c5321769b6b3f805fd1e9f76916023b2c295dc56c2e8');
INSERT INTO then_0_1.events VALUES (28, '2026-11-16T16:24:51.909843Z', 'voted', 'qzzq6upg8m', 'rar2mhwva5', '{"approved":true,"args_digest":"c54eaae48154f87c16278446393527c25853bffb11d8bb7a3b6ac57e6130f46b","by":"ana","kind":"person","note":"fine","roles":["ops"]}', 'd006ea6c615d982d7c19c5321769b6b3f805fd1e9f76916023b2c295dc56c2e8', '1a1617638368bc9487a0fcdfe0697aa35a9d2cea7419766041336697999693e1');
INSERT INTO then_0_1.events VALUES (29, '2026-11-16T16:24:51.909843Z', 'settled', 'qzzq6upg8m', 'rar2mhwva5', '{"by":"ana","ending":"approved","kind":"person","note":"fine","roles":["ops"],"state":"approved"}', '1a1617638368bc9487a0fcdfe0697aa35a9d2cea7419766041336697999693e1', '976743d19c6e8ffa97005ac42473246b47d84bdaaa86c28d2b5ff605d3d0a42f');
INSERT INTO then_0_1.events VALUES (30, '2026-11-16T16:24:51.926691Z', 'run started', '', 'utnqbpwjn2', '{"agent":"","requester":""}', '976743d19c6e8ffa97005ac42473246b47d84bdaaa86c28d2b5ff605d3d0a42f', '1d8fcb5f9551cf792d59d7e0b6dbcb737840231fe161cbba7e5659ef447cbfd0');
INSERT INTO then_0_1.events VALUES (31, '2026-11-16T16:24:51.926691Z', 'asked', 'mkqa3cmc3b', 'utnqbpwjn2', '{"args":{"amount":11},"args_digest":"1dcb03dbb432a0fc253f1abc9c1f13e3b553bfff92d2f6015f8da9a97d3d692f","call":"01a1e52c-f7cb-72c1-9dd9-b48258c24e42.1794846291.920762:refund=11-refund","conversation":"01a1e52c-f7cb-72c1-9dd9-b4838e002f10","needs":"somebody with the role ''ops''","policy":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","reason":"the policy asks about `refund`","rules":["rule-2"],"schema":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","title":"refund(amount=11)","tool":"refund","verdict":"ask","worker":["shop"]}', '1d8fcb5f9551cf792d59d7e0b6dbcb737840231fe161cbba7e5659ef447cbfd0', '6b6a1177de9649f1c92f6cee96e7850e79d7114d465dd625d6950774ac58ff87');
INSERT INTO then_0_1.events VALUES (32, '2026-11-16T16:24:51.944418Z', 'run started', '', 'rqa4jhd9cz', '{"agent":"","requester":""}', '6b6a1177de9649f1c92f6cee96e7850e79d7114d465dd625d6950774ac58ff87', '5694417d7b3c73477b0bec8c20547db66af2695e991abcaa4263569367c18826');
INSERT INTO then_0_1.events VALUES (33, '2026-11-16T16:24:51.944418Z', 'asked', '9kpqq23pq8', 'rqa4jhd9cz', '{"args":{"amount":13},"args_digest":"b963514b08b1cc9a25add378bed5902719ccceaa2759717adb505e6c65bd6009","call":"01a1e52c-f7dd-76c4-877e-07f69be81942.1794846291.939358:refund=13-refund","conversation":"01a1e52c-f7de-7449-b9da-076c230e5595","needs":"somebody with the role ''ops''","policy":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","reason":"the policy asks about `refund`","rules":["rule-2"],"schema":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","title":"refund(amount=13)","tool":"refund","verdict":"ask","worker":["shop"]}', '5694417d7b3c73477b0bec8c20547db66af2695e991abcaa4263569367c18826', '5449b14a25cbe2251c94f92f029f8e8299068cbfd3b9d6f790b36d5ca36cd1c8');
INSERT INTO then_0_1.events VALUES (34, '2026-11-16T16:24:51.976198Z', 'run started', '', 'begun-in-a-thread', '{"agent":"worker:triage","requester":""}', '5449b14a25cbe2251c94f92f029f8e8299068cbfd3b9d6f790b36d5ca36cd1c8', 'cfe2391eb4880bdb4e57daf7d836019ab9668d3441486453e6387881ae7bf228');
INSERT INTO then_0_1.events VALUES (35, '2026-11-16T16:24:51.978384Z', 'run resumed', '', 'begun-in-a-thread', '{"epoch":2}', 'cfe2391eb4880bdb4e57daf7d836019ab9668d3441486453e6387881ae7bf228', '046a1efcd94c20f682f5a690ba9f36bfa0ed47fabd427cbcf949d1813769e6ff');
INSERT INTO then_0_1.events VALUES (36, '2026-11-16T16:24:51.979200Z', 'run ended', '', 'begun-in-a-thread', '{"detail":"hello yourself","state":"done"}', '046a1efcd94c20f682f5a690ba9f36bfa0ed47fabd427cbcf949d1813769e6ff', 'e1ffa87d3eff707fddf12d816aa43137d144f2baa93c2a80f900ab42d216c81f');
INSERT INTO then_0_1.events VALUES (37, '2026-11-16T16:24:51.981131Z', 'run started', '', 'goes-on', '{"agent":"worker:triage","requester":""}', 'e1ffa87d3eff707fddf12d816aa43137d144f2baa93c2a80f900ab42d216c81f', '9d0d743741865b6734dc6236b46a164d1032938ab905fd2eea9e64efb03e355d');
INSERT INTO then_0_1.grants OVERRIDING SYSTEM VALUE VALUES (1, '8hkrj6d6rf', 'pay', '93287192d7a9962c56378171eb1db61c771a1028a7896034cbe54d183f0135f7', 0, '{"tool":"pay","memory_key":"93287192d7a9962c56378171eb1db61c771a1028a7896034cbe54d183f0135f7","approved":true,"scope":"project","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c","id":"8hkrj6d6rf","by":"ana","at":"2026-11-16T16:24:51.804294+00:00","summary":"pay(amount=2)"}');
INSERT INTO then_0_1.processes VALUES ('kzvf96udfd', '{"id":"kzvf96udfd","host":"host.example/1","pid":22253,"born":"6134701","seen_at":"2026-11-16T16:24:51.596041+00:00"}');
INSERT INTO then_0_1.requests OVERRIDING SYSTEM VALUE VALUES (1, 'ntyzmfqmc8', 1, 'pending', 1794846291596041, 4948446291743673, NULL, 0, '', 0, 'pay(amount=5)', 'pay', 'shop', '', 1, '58tdpvs9tp', '01a1e52c-f530-752a-8c15-bb46bb6fdde5', '01a1e52c-f530-752a-8c15-bb45524f796c.1794846291.320891:pay=5 refund=7-pay', '{"summary":"pay(amount=5)","id":"ntyzmfqmc8","call":{"tool":"pay","args":{"amount":5},"worker":["shop"],"call_id":"pay=5 refund=7-pay","run_id":"01a1e52c-f530-752a-8c15-bb45524f796c.1794846291.320891","conversation_id":"01a1e52c-f530-752a-8c15-bb46bb6fdde5","path":"pay=5 refund=7-pay","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c"},"verdict":{"effect":"ask","rules":["rule-1"],"reason":"the policy asks about `pay`"},"policy_revision":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","schema":{"additionalProperties":false,"properties":{"amount":{"type":"integer"}},"required":["amount"],"type":"object"},"root":"/","run":"58tdpvs9tp","title":"pay(amount=5)","same":true}');
INSERT INTO then_0_1.requests OVERRIDING SYSTEM VALUE VALUES (3, '9xz9ynxh9y', 1, 'pending', 1794846291632275, 4948446291743726, NULL, 0, '', 0, 'refund(amount=3)', 'refund', 'shop', 'ops', 1, 'jkksv99ghf', '01a1e52c-f6a2-7321-80b7-ca30cd99bbaf', '01a1e52c-f6a2-7321-80b7-ca2fea8566cf.1794846291.626348:refund=3-refund', '{"summary":"refund(amount=3)","id":"9xz9ynxh9y","call":{"tool":"refund","args":{"amount":3},"worker":["shop"],"call_id":"refund=3-refund","run_id":"01a1e52c-f6a2-7321-80b7-ca2fea8566cf.1794846291.626348","conversation_id":"01a1e52c-f6a2-7321-80b7-ca30cd99bbaf","path":"refund=3-refund","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c"},"verdict":{"effect":"ask","rules":["rule-2"],"reason":"the policy asks about `refund`","requirement":{"role":"ops"}},"policy_revision":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","schema":{"additionalProperties":false,"properties":{"amount":{"type":"integer"}},"required":["amount"],"type":"object"},"root":"/","run":"jkksv99ghf","title":"refund(amount=3)","same":true}');
INSERT INTO then_0_1.requests OVERRIDING SYSTEM VALUE VALUES (2, '72y45x432r', 1, 'pending', 1794846291596041, 4948446291764845, NULL, 0, '', 0, 'refund(amount=7)', 'refund', 'shop', 'ops', 1, '58tdpvs9tp', '01a1e52c-f530-752a-8c15-bb46bb6fdde5', '01a1e52c-f530-752a-8c15-bb45524f796c.1794846291.320891:pay=5 refund=7-refund', '{"summary":"refund(amount=7)","id":"72y45x432r","call":{"tool":"refund","args":{"amount":7},"worker":["shop"],"call_id":"pay=5 refund=7-refund","run_id":"01a1e52c-f530-752a-8c15-bb45524f796c.1794846291.320891","conversation_id":"01a1e52c-f530-752a-8c15-bb46bb6fdde5","path":"pay=5 refund=7-refund","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c"},"verdict":{"effect":"ask","rules":["rule-2"],"reason":"the policy asks about `refund`","requirement":{"role":"ops"}},"policy_revision":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","schema":{"additionalProperties":false,"properties":{"amount":{"type":"integer"}},"required":["amount"],"type":"object"},"root":"/","run":"58tdpvs9tp","title":"refund(amount=7)","same":true}');
INSERT INTO then_0_1.requests OVERRIDING SYSTEM VALUE VALUES (4, 'ugkpwbvkc6', 4, 'succeeded', 1794846291653274, 4948446291743736, NULL, 0, '', 1, 'pay(amount=2)', 'pay', 'shop', '', 1, 'e43fqb7rza', '01a1e52c-f6b8-7575-b82d-11a905d4362c', '01a1e52c-f6b8-7575-b82d-11a8a0adaea7.1794846291.646021:look=1 pay=2-pay', '{"summary":"pay(amount=2)","id":"ugkpwbvkc6","call":{"tool":"pay","args":{"amount":2},"worker":["shop"],"call_id":"look=1 pay=2-pay","run_id":"01a1e52c-f6b8-7575-b82d-11a8a0adaea7.1794846291.646021","conversation_id":"01a1e52c-f6b8-7575-b82d-11a905d4362c","path":"look=1 pay=2-pay","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c"},"verdict":{"effect":"ask","rules":["rule-1"],"reason":"the policy asks about `pay`"},"policy_revision":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","schema":{"additionalProperties":false,"properties":{"amount":{"type":"integer"}},"required":["amount"],"type":"object"},"root":"/","run":"e43fqb7rza","title":"pay(amount=2)","same":true}');
INSERT INTO then_0_1.requests OVERRIDING SYSTEM VALUE VALUES (5, '38vzd5ydgq', 1, 'pending', 1794846291678266, 4948446291743745, NULL, 0, '', 0, 'pay(amount=4)', 'pay', 'shop', '', 1, '52b9fjxmjy', '01a1e52c-f6d1-77c7-ae74-de56858c13fc', '01a1e52c-f6d1-77c7-ae74-de55b3a3d3ee.1794846291.671500:pay=4-pay', '{"summary":"pay(amount=4)","id":"38vzd5ydgq","call":{"tool":"pay","args":{"amount":4},"worker":["shop"],"call_id":"pay=4-pay","run_id":"01a1e52c-f6d1-77c7-ae74-de55b3a3d3ee.1794846291.671500","conversation_id":"01a1e52c-f6d1-77c7-ae74-de56858c13fc","path":"pay=4-pay","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c"},"verdict":{"effect":"ask","rules":["rule-1"],"reason":"the policy asks about `pay`"},"policy_revision":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","schema":{"additionalProperties":false,"properties":{"amount":{"type":"integer"}},"required":["amount"],"type":"object"},"root":"/","run":"52b9fjxmjy","title":"pay(amount=4)","same":true}');
INSERT INTO then_0_1.requests OVERRIDING SYSTEM VALUE VALUES (6, 'qzzq6upg8m', 1, 'approved', 1794846291903296, NULL, NULL, 0, '', 1, 'refund(amount=9)', 'refund', 'shop', 'ops', 1, 'rar2mhwva5', '01a1e52c-f7ad-70a6-a3a5-55d4de13e970', '01a1e52c-f7ad-70a6-a3a5-55d374c37769.1794846291.898411:refund=9-refund', '{"summary":"refund(amount=9)","id":"qzzq6upg8m","call":{"tool":"refund","args":{"amount":9},"worker":["shop"],"call_id":"refund=9-refund","run_id":"01a1e52c-f7ad-70a6-a3a5-55d374c37769.1794846291.898411","conversation_id":"01a1e52c-f7ad-70a6-a3a5-55d4de13e970","path":"refund=9-refund","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c"},"verdict":{"effect":"ask","rules":["rule-2"],"reason":"the policy asks about `refund`","requirement":{"role":"ops"}},"policy_revision":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","schema":{"additionalProperties":false,"properties":{"amount":{"type":"integer"}},"required":["amount"],"type":"object"},"root":"/","run":"rar2mhwva5","title":"refund(amount=9)","same":true}');
INSERT INTO then_0_1.requests OVERRIDING SYSTEM VALUE VALUES (7, 'mkqa3cmc3b', 0, 'pending', 1794846291926691, NULL, NULL, 0, '', 0, 'refund(amount=11)', 'refund', 'shop', 'ops', 1, 'utnqbpwjn2', '01a1e52c-f7cb-72c1-9dd9-b4838e002f10', '01a1e52c-f7cb-72c1-9dd9-b48258c24e42.1794846291.920762:refund=11-refund', '{"summary":"refund(amount=11)","id":"mkqa3cmc3b","call":{"tool":"refund","args":{"amount":11},"worker":["shop"],"call_id":"refund=11-refund","run_id":"01a1e52c-f7cb-72c1-9dd9-b48258c24e42.1794846291.920762","conversation_id":"01a1e52c-f7cb-72c1-9dd9-b4838e002f10","path":"refund=11-refund","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c"},"verdict":{"effect":"ask","rules":["rule-2"],"reason":"the policy asks about `refund`","requirement":{"role":"ops"}},"policy_revision":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","schema":{"additionalProperties":false,"properties":{"amount":{"type":"integer"}},"required":["amount"],"type":"object"},"root":"/","run":"utnqbpwjn2","title":"refund(amount=11)","same":true}');
INSERT INTO then_0_1.requests OVERRIDING SYSTEM VALUE VALUES (8, '9kpqq23pq8', 0, 'pending', 1794846291944418, NULL, NULL, 0, '', 0, 'refund(amount=13)', 'refund', 'shop', 'ops', 1, 'rqa4jhd9cz', '01a1e52c-f7de-7449-b9da-076c230e5595', '01a1e52c-f7dd-76c4-877e-07f69be81942.1794846291.939358:refund=13-refund', '{"summary":"refund(amount=13)","id":"9kpqq23pq8","call":{"tool":"refund","args":{"amount":13},"worker":["shop"],"call_id":"refund=13-refund","run_id":"01a1e52c-f7dd-76c4-877e-07f69be81942.1794846291.939358","conversation_id":"01a1e52c-f7de-7449-b9da-076c230e5595","path":"refund=13-refund","schema_hash":"2c45d572e8d486bc95986d8a85051672f76e3d3bea9d4938e280aa7087ca4b2c"},"verdict":{"effect":"ask","rules":["rule-2"],"reason":"the policy asks about `refund`","requirement":{"role":"ops"}},"policy_revision":"6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4","schema":{"additionalProperties":false,"properties":{"amount":{"type":"integer"}},"required":["amount"],"type":"object"},"root":"/","run":"rqa4jhd9cz","title":"refund(amount=13)","same":true}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (1, '58tdpvs9tp', 'going', '{"id":"58tdpvs9tp","conversation_id":"01a1e52c-f530-752a-8c15-bb46bb6fdde5","prompt":"pay=5 refund=7","started_at":"2026-11-16T16:24:51.596041+00:00","changed_at":"2026-11-16T16:24:51.596041+00:00","tip":"b5e74f98c72e363879b636e9ccdd48c5","rest":"{\"messages\":[],\"usage\":{\"input_tokens\":52,\"cache_write_tokens\":0,\"cache_write_1h_tokens\":0,\"cache_read_tokens\":0,\"output_tokens\":8,\"output_reasoning_tokens\":0,\"input_audio_tokens\":0,\"cache_audio_read_tokens\":0,\"output_audio_tokens\":0,\"audio_seconds\":0.0,\"details\":{},\"cost\":null,\"requests\":1,\"tool_calls\":0},\"conversation_id\":\"01a1e52c-f530-752a-8c15-bb46bb6fdde5\",\"deferred_tool_requests\":{\"calls\":[],\"approvals\":[{\"tool_name\":\"pay\",\"args\":{\"amount\":5},\"tool_call_id\":\"pay=5 refund=7-pay\",\"tool_kind\":null,\"id\":null,\"provider_name\":null,\"provider_details\":null,\"part_kind\":\"tool-call\"},{\"tool_name\":\"refund\",\"args\":{\"amount\":7},\"tool_call_id\":\"pay=5 refund=7-refund\",\"tool_kind\":null,\"id\":null,\"provider_name\":null,\"provider_details\":null,\"part_kind\":\"tool-call\"}],\"metadata\":{\"pay=5 refund=7-pay\":{\"summary\":\"pay(amount=5)\",\"signoff\":{\"request\":\"ntyzmfqmc8\",\"reason\":\"the policy asks about `pay`\",\"rules\":[\"rule-1\"],\"worker\":[\"shop\"],\"changed\":[]}},\"pay=5 refund=7-refund\":{\"summary\":\"refund(amount=7)\",\"signoff\":{\"request\":\"72y45x432r\",\"reason\":\"the policy asks about `refund`\",\"rules\":[\"rule-2\"],\"worker\":[\"shop\"],\"changed\":[]}}}},\"revision\":null,\"new_message_index\":null}"}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (2, 'jkksv99ghf', 'going', '{"id":"jkksv99ghf","conversation_id":"01a1e52c-f6a2-7321-80b7-ca30cd99bbaf","prompt":"refund=3","started_at":"2026-11-16T16:24:51.632275+00:00","changed_at":"2026-11-16T16:24:51.632275+00:00","tip":"412a6e2e2c71198d4daa4914294fc751","rest":"{\"messages\":[],\"usage\":{\"input_tokens\":51,\"cache_write_tokens\":0,\"cache_write_1h_tokens\":0,\"cache_read_tokens\":0,\"output_tokens\":4,\"output_reasoning_tokens\":0,\"input_audio_tokens\":0,\"cache_audio_read_tokens\":0,\"output_audio_tokens\":0,\"audio_seconds\":0.0,\"details\":{},\"cost\":null,\"requests\":1,\"tool_calls\":0},\"conversation_id\":\"01a1e52c-f6a2-7321-80b7-ca30cd99bbaf\",\"deferred_tool_requests\":{\"calls\":[],\"approvals\":[{\"tool_name\":\"refund\",\"args\":{\"amount\":3},\"tool_call_id\":\"refund=3-refund\",\"tool_kind\":null,\"id\":null,\"provider_name\":null,\"provider_details\":null,\"part_kind\":\"tool-call\"}],\"metadata\":{\"refund=3-refund\":{\"summary\":\"refund(amount=3)\",\"signoff\":{\"request\":\"9xz9ynxh9y\",\"reason\":\"the policy asks about `refund`\",\"rules\":[\"rule-2\"],\"worker\":[\"shop\"],\"changed\":[]}}}},\"revision\":null,\"new_message_index\":null}"}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (4, '52b9fjxmjy', 'going', '{"id":"52b9fjxmjy","conversation_id":"01a1e52c-f6d1-77c7-ae74-de56858c13fc","prompt":"pay=4","started_at":"2026-11-16T16:24:51.678266+00:00","changed_at":"2026-11-16T16:24:51.678266+00:00","tip":"d0360f1f7c6bdea5f3fe67c7387d68b6","rest":"{\"messages\":[],\"usage\":{\"input_tokens\":51,\"cache_write_tokens\":0,\"cache_write_1h_tokens\":0,\"cache_read_tokens\":0,\"output_tokens\":4,\"output_reasoning_tokens\":0,\"input_audio_tokens\":0,\"cache_audio_read_tokens\":0,\"output_audio_tokens\":0,\"audio_seconds\":0.0,\"details\":{},\"cost\":null,\"requests\":1,\"tool_calls\":0},\"conversation_id\":\"01a1e52c-f6d1-77c7-ae74-de56858c13fc\",\"deferred_tool_requests\":{\"calls\":[],\"approvals\":[{\"tool_name\":\"pay\",\"args\":{\"amount\":4},\"tool_call_id\":\"pay=4-pay\",\"tool_kind\":null,\"id\":null,\"provider_name\":null,\"provider_details\":null,\"part_kind\":\"tool-call\"}],\"metadata\":{\"pay=4-pay\":{\"summary\":\"pay(amount=4)\",\"signoff\":{\"request\":\"38vzd5ydgq\",\"reason\":\"the policy asks about `pay`\",\"rules\":[\"rule-1\"],\"worker\":[\"shop\"],\"changed\":[]}}}},\"revision\":null,\"new_message_index\":null}"}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (3, 'e43fqb7rza', 'done', '{"id":"e43fqb7rza","conversation_id":"01a1e52c-f6b8-7575-b82d-11a905d4362c","prompt":"look=1 pay=2","state":"done","epoch":2,"started_at":"2026-11-16T16:24:51.653274+00:00","changed_at":"2026-11-16T16:24:51.848277+00:00","tip":"03ad4971f58ec9b653cb870f44546aaf","rest":"{\"messages\":[{\"parts\":[{\"tool_name\":\"look\",\"content\":\"looked 1\",\"tool_call_id\":\"look=1 pay=2-look\",\"tool_kind\":null,\"metadata\":null,\"timestamp\":\"2026-11-16T16:24:51.649498Z\",\"outcome\":\"success\",\"retry\":null,\"part_kind\":\"tool-return\"}],\"timestamp\":null,\"instructions\":null,\"kind\":\"request\",\"run_id\":null,\"conversation_id\":null,\"metadata\":null,\"state\":\"complete\"}],\"usage\":{\"input_tokens\":52,\"cache_write_tokens\":0,\"cache_write_1h_tokens\":0,\"cache_read_tokens\":0,\"output_tokens\":8,\"output_reasoning_tokens\":0,\"input_audio_tokens\":0,\"cache_audio_read_tokens\":0,\"output_audio_tokens\":0,\"audio_seconds\":0.0,\"details\":{},\"cost\":null,\"requests\":1,\"tool_calls\":1},\"conversation_id\":\"01a1e52c-f6b8-7575-b82d-11a905d4362c\",\"deferred_tool_requests\":{\"calls\":[],\"approvals\":[{\"tool_name\":\"pay\",\"args\":{\"amount\":2},\"tool_call_id\":\"look=1 pay=2-pay\",\"tool_kind\":null,\"id\":null,\"provider_name\":null,\"provider_details\":null,\"part_kind\":\"tool-call\"}],\"metadata\":{\"look=1 pay=2-pay\":{\"summary\":\"pay(amount=2)\",\"signoff\":{\"request\":\"ugkpwbvkc6\",\"reason\":\"the policy asks about `pay`\",\"rules\":[\"rule-1\"],\"worker\":[\"shop\"],\"changed\":[]}}}},\"revision\":null,\"new_message_index\":null}","detail":"looked 1 paid 2"}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (7, 'rar2mhwva5', 'going', '{"id":"rar2mhwva5","conversation_id":"01a1e52c-f7ad-70a6-a3a5-55d4de13e970","prompt":"refund=9","started_at":"2026-11-16T16:24:51.903296+00:00","changed_at":"2026-11-16T16:24:51.903296+00:00","tip":"d4e66a535a9297e3854b03e00d4944a8","rest":"{\"messages\":[],\"usage\":{\"input_tokens\":51,\"cache_write_tokens\":0,\"cache_write_1h_tokens\":0,\"cache_read_tokens\":0,\"output_tokens\":4,\"output_reasoning_tokens\":0,\"input_audio_tokens\":0,\"cache_audio_read_tokens\":0,\"output_audio_tokens\":0,\"audio_seconds\":0.0,\"details\":{},\"cost\":null,\"requests\":1,\"tool_calls\":0},\"conversation_id\":\"01a1e52c-f7ad-70a6-a3a5-55d4de13e970\",\"deferred_tool_requests\":{\"calls\":[],\"approvals\":[{\"tool_name\":\"refund\",\"args\":{\"amount\":9},\"tool_call_id\":\"refund=9-refund\",\"tool_kind\":null,\"id\":null,\"provider_name\":null,\"provider_details\":null,\"part_kind\":\"tool-call\"}],\"metadata\":{\"refund=9-refund\":{\"summary\":\"refund(amount=9)\",\"signoff\":{\"request\":\"qzzq6upg8m\",\"reason\":\"the policy asks about `refund`\",\"rules\":[\"rule-2\"],\"worker\":[\"shop\"],\"changed\":[]}}}},\"revision\":null,\"new_message_index\":null}"}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (8, 'utnqbpwjn2', 'going', '{"id":"utnqbpwjn2","conversation_id":"01a1e52c-f7cb-72c1-9dd9-b4838e002f10","prompt":"refund=11","started_at":"2026-11-16T16:24:51.926691+00:00","changed_at":"2026-11-16T16:24:51.926691+00:00","tip":"1b4b8ea0e17e8aa74092922fcfd2477f","rest":"{\"messages\":[],\"usage\":{\"input_tokens\":51,\"cache_write_tokens\":0,\"cache_write_1h_tokens\":0,\"cache_read_tokens\":0,\"output_tokens\":4,\"output_reasoning_tokens\":0,\"input_audio_tokens\":0,\"cache_audio_read_tokens\":0,\"output_audio_tokens\":0,\"audio_seconds\":0.0,\"details\":{},\"cost\":null,\"requests\":1,\"tool_calls\":0},\"conversation_id\":\"01a1e52c-f7cb-72c1-9dd9-b4838e002f10\",\"deferred_tool_requests\":{\"calls\":[],\"approvals\":[{\"tool_name\":\"refund\",\"args\":{\"amount\":11},\"tool_call_id\":\"refund=11-refund\",\"tool_kind\":null,\"id\":null,\"provider_name\":null,\"provider_details\":null,\"part_kind\":\"tool-call\"}],\"metadata\":{\"refund=11-refund\":{\"summary\":\"refund(amount=11)\",\"signoff\":{\"request\":\"mkqa3cmc3b\",\"reason\":\"the policy asks about `refund`\",\"rules\":[\"rule-2\"],\"worker\":[\"shop\"],\"changed\":[]}}}},\"revision\":null,\"new_message_index\":null}"}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (9, 'rqa4jhd9cz', 'going', '{"id":"rqa4jhd9cz","conversation_id":"01a1e52c-f7de-7449-b9da-076c230e5595","prompt":"refund=13","started_at":"2026-11-16T16:24:51.944418+00:00","changed_at":"2026-11-16T16:24:51.944418+00:00","tip":"f3921984c55169bd36d6f9210416e391","rest":"{\"messages\":[],\"usage\":{\"input_tokens\":51,\"cache_write_tokens\":0,\"cache_write_1h_tokens\":0,\"cache_read_tokens\":0,\"output_tokens\":4,\"output_reasoning_tokens\":0,\"input_audio_tokens\":0,\"cache_audio_read_tokens\":0,\"output_audio_tokens\":0,\"audio_seconds\":0.0,\"details\":{},\"cost\":null,\"requests\":1,\"tool_calls\":0},\"conversation_id\":\"01a1e52c-f7de-7449-b9da-076c230e5595\",\"deferred_tool_requests\":{\"calls\":[],\"approvals\":[{\"tool_name\":\"refund\",\"args\":{\"amount\":13},\"tool_call_id\":\"refund=13-refund\",\"tool_kind\":null,\"id\":null,\"provider_name\":null,\"provider_details\":null,\"part_kind\":\"tool-call\"}],\"metadata\":{\"refund=13-refund\":{\"summary\":\"refund(amount=13)\",\"signoff\":{\"request\":\"9kpqq23pq8\",\"reason\":\"the policy asks about `refund`\",\"rules\":[\"rule-2\"],\"worker\":[\"shop\"],\"changed\":[]}}}},\"revision\":null,\"new_message_index\":null}"}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (10, 'begun-in-a-thread', 'done', '{"id":"begun-in-a-thread","agent":"worker:triage","prompt":"hello","options":{"place":{"board":"9/"}},"state":"done","epoch":2,"started_at":"2026-11-16T16:24:51.976198+00:00","changed_at":"2026-11-16T16:24:51.979200+00:00","detail":"hello yourself"}');
INSERT INTO then_0_1.runs OVERRIDING SYSTEM VALUE VALUES (13, 'goes-on', 'going', '{"id":"goes-on","agent":"worker:triage","prompt":"and?","options":{"place":{"board":"9/"},"chat":true},"started_at":"2026-11-16T16:24:51.981131+00:00","changed_at":"2026-11-16T16:24:51.981131+00:00"}');
INSERT INTO then_0_1.schema_version VALUES (1, '0001_first', '2026-11-16T16:24:51+00:00');
INSERT INTO then_0_1.schema_version VALUES (2, '0002_deliveries', '2026-11-16T16:24:51+00:00');
INSERT INTO then_0_1.segments OVERRIDING SYSTEM VALUE VALUES (1, '\x6235653734663938633732653336333837396236333665396363646434386335', NULL, 2, '\x7a7801c554db6ea33010fd9515cfa1c2348604a97fb14fad2ae4d84362056cd6975611cabf778c138b36bb9bbeacf60d8ec73367ce9cf1cb948dcc389b352f53c6b572a05cd620767aa23f0c745e89a73a5b654e0e601d1b463c2c8bb2ca09c949f593544db96e2879782cc896d6cf1819d2b547a904467a0b261f8d1e46979d5fbf93a5a45515b248659df1dc49ad909bf27dbfca2e490dfcf2c805838c57ad0c750ac208d092e71d7d2cf29a962cdf7042f3dd6e4d69b9eeea6dc5311efb7b036359c87af762b5db559d1040f1e2008e09e6d895092ae100eb72ecac07fc3caf963a3aadfb56b12184a0929880993db631656cd03e084ccf284688e2acef2395cf92e7f1de1c13fb8e1a8476e317cafa2605984ba12fa040c6b24fd22d871272e6a1eecc7ac935cefb3774ebbb74d3d57fcc184de42ddba3b2137a64f4ae75fa08c123b4c401337e80f6dd4807092f3ec3e4707b62808925aabd5b66deacb20b8281562ba9f6cbe848837921f5128e5c22fc870237772260018d2ab0a5e201c9a7494e3804aed1f8b301f067d00292cf7053e76d695ae78d6a8269e7e3793fd261fa48517717bb2c365b125632ad9f1d71290191bf5bd09bfeea55ce14ca869e6bedc93a18ae784a909afc626303b1d8bc22f1ac934ada431b47714df4df5e82776d8e76641c905077657390d669736a85dc8787eab2b01d2e2488963914600c2f6eece7f62d79fd00c765e0e3');
INSERT INTO then_0_1.segments OVERRIDING SYSTEM VALUE VALUES (2, '\x3431326136653265326337313139386434646161343931343239346663373531', NULL, 2, '\x7a7801c554db8e9b3010fd173f871506c22648fd8b3e75b542137b48ac804d7dd9d50ae5df3bc601d18ddaed5bdfccf178e6cc9933bc4c6c04eb1d6b5e26268cf6a83d6b98c52e68f9ad643be6d580cec330125ce4459d719ef1fa3baf9ba26af6fca92eca23af7e50644cd45e959614191cda6cb466183dbbbdfe4b96aa2ae62c4a3b6f83f0ca6862a543dfefd83da9c59f81b850291b74ab629d9c03c77d21b2ae86227b2e0b9e1df2d37326a0e8100efbba161dc553676f681dc4ac5f3d2c73218fc7d309e2c3013d48f0b03021253c525d419df548c7db6eaba037a66f350c3124694839c09ea99389c1604254b7bc911e315040df27368bded9fa680e487d270d62bbe944b2be2989f65ee8132889b1ea57e9b64389394999be9f47121c9c89e7c4941e836fbdb962547ccf492e10176cdfadf2b8e2f9ef30bf3cde5804b9454df0dbccd58edd110a74462b7dde46271a10a4325b387149f01f0a3cbc4980431abba496f22722bfea3291fcc2908d6639e9633012d7a991ef67ef35ad0f5637d102f3f5ecb6f5723dac515faf495d5687b826ab99dd48164742fe3ed060fb65f20234c946136cdd87f3382cf89a606df293292ca662b3dbd25da7b47297368d6249f4dff6eaddd8ab1b412011ea163617e5bcb11fad54e7b8f677fb77646f942d7812608c7faed4cfe366befe025beda21a');
INSERT INTO then_0_1.segments OVERRIDING SYSTEM VALUE VALUES (3, '\x3033616434393731663538656339623635336362383730663434353436616166', NULL, 2, '\x7a7801c554db6edb300cfd9541cf716179b1931ae85fec694521b0169d08b1254f971681917f1f653986d76c4b5f86bdd91475787878a8e7910d60bd63f5f3c81aa33d6acf6ad619737ae25f06383f156cc3bcead179e8073a2af2a2ca38cf78f58d5775b1ad4bfe506dbf56bcfa4e99114c9c949694191cda6cb0a61f3cbbbc7c06659b3ff288a2b4f336345e194dcc74e8ba0d9b412dfe08c485926cd042c53a39078e65d1646df5bacf76e5aecc5ef7852492b0871c2420ec289fba7b43eb20a2debdf89897929a2a1abad8a327100f5726a48447aadb50671dd2e765b356d11bd3090d7d4c893a1202d803f53132e84d88faf20ba911d31ae8bac465ad78365f9b5252df4983d86efa2259df94443b17fa1094c458758b74eba144cc2c969d58afb9d2b07f43b5b84335ddfac74cc93cc1c181141dc91b43f0c29b13466f94050d169a238a77ab3c2ef1fcd7303fde9e5804b98e9ae0d7c8fb0d9b2394e88c56fab0ce4e34204865d6e1c42585ff50e0e64e0a3824834a6a297f20f2cb0447d2bf3164f869f0f4d31b898bbfdaa0a72da9850f56d7d1acd3f1b417cbe1f2b164dd5fe82a2fa6555cd6ce0db48c4815fe6ebd60bbab471bd0241b794db8b3f3d85fe30bc0d2e407fb5a4cc5a6cd4867add2ca1d451ac515e8bfbd00efc69edc000d12a1f6cae6a89c37f62ca43ac4076a5ed4961611a5004f020cf19d4dfddcbe212f3f0198c1dcb1');
INSERT INTO then_0_1.segments OVERRIDING SYSTEM VALUE VALUES (4, '\x6430333630663166376336626465613566336665363763373338376436386236', NULL, 2, '\x7a7801c554cb6edb3010fc179ead40d4331190bfe8294120b0e4ca262c912a1f090cc1ff9ea568116a8c36bdf546cd2e676767977a5dc8cc8cb3a47b5d08d7ca8172a443ecf25c9103717202ebd8342356e44593519ad1e6076dbaa2ea6afad0344f65f1f4829981a53f4b2530d35b30d96cf4343b727dfb2796b65959a4b2ce78eea4562849f9713c901ba9815f1eb56029e3552f439d9c320a75c1b3a111346b5bde660cda2a1350d73f4b568a1200f3b1ad77309605d66f2f368ff523a7e5c0f1e2048e09e6d8a6049d708075397636021eaf87bd7d4eebb1576c0a296820123073c43616c226ed83afd515cd08599c8d6394b23a9dc5f43514db8dad872ee309dd7c9702cc8dff0b2850a81c9363fb5904ce2c945b27e12d3ba2bc8548357bd73b7d8660744dd125c64fd07f18e920e1f9ef303ddd470c30b147b5777be6ea406e08265aada43aeeb3a30ce685d47b386a89f01f0adcdd8980059cb6c096f207149f7c59d078ae717b563bf163d202d2b006afd695eb7ae78deac2e4d7f0ba6429980e29ebdbd7d1d23acfc3eb483b6c67dcecb0947f1fa837e33679ce14da8613ecedc53a98363c11a426bf2c8581586cddb3181ba492f6d4c7516c44ffed397d6873b633e38082864dcd495aa7cda517f2185efb6dfd075c6f103d7368c01cfe56b19ffb07f9f6090ba59dec');
INSERT INTO then_0_1.segments OVERRIDING SYSTEM VALUE VALUES (5, '\x6434653636613533356139323937653338353462303365303064343934346138', NULL, 2, '\x7a7801c554db6edb300cfd173dc78515df1a03fb8b3dad280cc2a21321b6e4e9d2a230f2efa3ac58f01a6cdddbdee4238a3c3c3cf4cbc26630ceb2f66561bd560e95632d33387825be9dd8813939a17530cd041ff3639d719ef1fa3bafdb63d956fce9f9943779f1832243a2ee2a95a0486fd164b3d1d3ecd8edf55fb2705eaf59a4b2cef8de49ad8895f2e37860f7a4067f7ae242a58c579d0c75720e1cab639f0d0d88acc9a1cea0802aab2a5134655f344d1d9aa0ceded0580859bf7c580ae4059e9a9c1e4ee84080838d0929e190eaf6d4d98874bc1df60a3aadc74ec11442a2869403cc993a59184cda07754f37d22304f6308e91cda677961ead01b1efa84168379e48d63729d0dc0b7d0205319663926e3f9490330b45d791780b67e2b930a966ef3aa7af1814af38c905fd05bb77231d263cff1de697c71b8320f6a8f66e9fb93cb03b4281562ba9cefbe84803bc907a0f472e11fe4381873711b0486317d452fe44e4932e0bc9df6bb2d12a277d4c5a609a1af97ef55edb396f541b2cb05eaf6e4b97e990a2be5e93e792f3b026c9cc76268b23217f1fa837e336f91e14c94613ecec8775386d784a909afc640a83b1d8eab678374825eda58ba3d812fdb7bd7ad7e66a67e891080d1b9b8bb44e9b8f4ec87358fbbbfd07b2378a0e1c0930873f57ece771335f7f019e19a132');
INSERT INTO then_0_1.segments OVERRIDING SYSTEM VALUE VALUES (6, '\x3162346238656130653137653861613734303932393232666366643234373766', NULL, 2, '\x7a7801c5545d6fe32010fc2f3cc795e11c27b1d47f714f575588c23a41b1c1c747abcaca7fef6212e436baebbddd9b332cb3b3b3439e663209173ce99e6622ad096002e988833e1af54829d990a047f0418c13e2ac666d456945db9fb4ed58d36de9c381eedba6fd859589899fb55158193db86a72769c02b93cff0bcba16e9bc4a28d0f2ecaa0ad4159260ec3865c491dfc8ea8058b5c345ca73e351514b64c56fd4ebe543b26697550ea50bd347bb6dd4bd640c3b01e477b05e74562fdf6e28f3dd435eb698d1747084289206e4ad08900d857e26403e0e765b3b630583b7023c654924d440ee18e38c94cc46863b297d20b1a922aa518862ca7385e956b4b459e3cbb9006ce5f68ecab56e0aeadbe800a35eba198b75e4be2ac52d76529d18b232a9dd1f329061eec1992e75b8a86097902fee6748082d79f617aba3f7120d41ab531ac999b0db92258e8add1e6b8aece324454daaee1ac25c37f68707727031e70f10a47aa1f507cf16546ffa5c5202d76e28fd12a287bc3e82fe9eb7888ce742904cbf192b772583e4ad5b70f85d5bb96a5889738fb09430e88fc7da1d10db7cd4b61d036dc20f7ef3ec078c30b4119f24b281ce4664bdcf259af8df6279e577123fa6f2febcdbab39f840414d4dfd49cb40fd6bd73a58fe9e15fe3df63bc417111d08029fd79e579eedfe6f307aedfa1b6');
INSERT INTO then_0_1.segments OVERRIDING SYSTEM VALUE VALUES (7, '\x6633393231393834633535313639626433366436663932313034313665333931', NULL, 2, '\x7a7801c554db6ee32010fd179e43651c5f624bfd8b7ddaaab2288c13141bbc5c5a5551fe7d0793206fa3bdbced1b3ecce5cc99835f2e64e1d63bd2bf5c8830da83f6a42716c6a0e533db931df16a06e7f9bc205e16654319a3acf9c69abeacfa9a3d75fbb66cabef18192b0d67a525460607962ed6cc8b27d7d77faad2166daca2b4f33608af8c465a3a4cd38edc8a5af811900b06d9a00715fb148c33a84b41c7564ada36a2a287b6055ab463d3bdc181755589f138da3b58c763d5c744a06d5575f4ad931c131b51ee0ba8ebaec6c4193c97dcf33b1354c203f61538d90478bceeb6127a63a641f339862411b106b7479ce442f86c429497edaf28488c147c9a129dac38cd696b449a3ca910074e2714f65d49b0b7565f40899cd594c5dbae25d6a4b1ebba94e0f811995e50f325f8c19b3344cd6b8682717182e1c32a0f192f7e85d9e9f1c602975bd404bfad5cedc80dc14067b4d2c76d74a2c18354660b272e09fe4d83879c0438c0c54b1ca97842f259970bea2f0c1a6995133f662321ef0dadbfbaaf1f7cb0ba8f2658af57bfe5cb7cc8517f7f28ddbe3e448b673bbb054d0e88fc79a1c14ef7cd0bae5136dce0e03e9d87f98ee70279c82fa6b0909aad764b77a3d2ca9d86b48a7ba1fff6b23e8c3dbb850b4042e39dcd49396fece720d5313efc9bfd47b437c8817b1460893faf34cfe3db7cfd09d4efa153');
INSERT INTO then_0_1.settings VALUES ('veil', '9397f528eaa4209d4e8faf854e66bb97db67cc54ef38fffe00bba3d59d9ef4be');
INSERT INTO then_0_1.settings VALUES ('policy 6d90f1ea04fea86d1e3e07603d396df86344a26805c0daf657f18d5a12c3e6a4', '[{"name": "", "file": "<rules>", "root": "/", "rules": [{"ask": "pay"}, {"ask": "refund", "by": "ops"}, {"allow": "look"}]}]');
INSERT INTO then_0_1.settings VALUES ('channel:board', '{"process": "kzvf96udfd", "backup_for": ""}');
INSERT INTO then_0_1.settings VALUES ('channel:night', '{"process": "kzvf96udfd", "backup_for": "board"}');
INSERT INTO then_0_1.settings VALUES ('channels', '["board", "night", "away"]');
INSERT INTO then_0_1.settings VALUES ('channel:away', '{"process": "kzvf96udfd", "backup_for": "", "down": {"since": "2026-11-16T16:24:51.693059+00:00", "problem": "the service is away", "attempts": 1, "next_at": "2026-11-16T16:24:52.693059+00:00", "hopeless": false}}');
INSERT INTO then_0_1.settings VALUES ('opened:9xz9ynxh9y', '[["6d47010e407ddba47d8460e9c3984e515309fd15eaf15d2505e76cbd213df915", "ana"], ["6d47010e407ddba47d8460e9c3984e515309fd15eaf15d2505e76cbd213df915", "ben"]]');
INSERT INTO then_0_1.settings VALUES ('talk:board:9', '{"run": "goes-on", "heard": "102", "lately": ["101", "102"], "turns": {"worker:triage": "goes-on"}}');
INSERT INTO then_0_1.votes VALUES ('ugkpwbvkc6', 0, 'ana', '{"by":{"name":"ana","roles":["ops"]},"at":"2026-11-16T16:24:51.804294+00:00","decision":{"approved":true,"remember":"always","ending":"approved","by":{"name":"ana","roles":["ops"]},"at":"2026-11-16T16:24:51.804294+00:00"},"args_digest":"a2879a37ea1e0b8938f44d782c2ff3887f30554da489efc8634d658a95a1094d"}');
INSERT INTO then_0_1.votes VALUES ('qzzq6upg8m', 0, 'ana', '{"by":{"name":"ana","roles":["ops"]},"at":"2026-11-16T16:24:51.909843+00:00","decision":{"approved":true,"note":"fine","ending":"approved","by":{"name":"ana","roles":["ops"]},"at":"2026-11-16T16:24:51.909843+00:00"},"args_digest":"c54eaae48154f87c16278446393527c25853bffb11d8bb7a3b6ac57e6130f46b"}');
SELECT pg_catalog.setval('then_0_1.checkpoints_nr_seq', 1, true);
SELECT pg_catalog.setval('then_0_1.delegations_nr_seq', 1, false);
SELECT pg_catalog.setval('then_0_1.deliveries_nr_seq', 22, true);
SELECT pg_catalog.setval('then_0_1.grants_nr_seq', 1, true);
SELECT pg_catalog.setval('then_0_1.requests_nr_seq', 8, true);
SELECT pg_catalog.setval('then_0_1.runs_nr_seq', 13, true);
SELECT pg_catalog.setval('then_0_1.segments_nr_seq', 7, true);
ALTER TABLE ONLY then_0_1.chain
    ADD CONSTRAINT chain_pkey PRIMARY KEY (one);
ALTER TABLE ONLY then_0_1.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (nr);
ALTER TABLE ONLY then_0_1.claims
    ADD CONSTRAINT claims_pkey PRIMARY KEY (request);
ALTER TABLE ONLY then_0_1.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (request);
ALTER TABLE ONLY then_0_1.delegations
    ADD CONSTRAINT delegations_pkey PRIMARY KEY (nr);
ALTER TABLE ONLY then_0_1.deliveries
    ADD CONSTRAINT deliveries_channel_subject_key UNIQUE (channel, subject);
ALTER TABLE ONLY then_0_1.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (nr);
ALTER TABLE ONLY then_0_1.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY then_0_1.grants
    ADD CONSTRAINT grants_id_key UNIQUE (id);
ALTER TABLE ONLY then_0_1.grants
    ADD CONSTRAINT grants_pkey PRIMARY KEY (nr);
ALTER TABLE ONLY then_0_1.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY then_0_1.requests
    ADD CONSTRAINT requests_id_key UNIQUE (id);
ALTER TABLE ONLY then_0_1.requests
    ADD CONSTRAINT requests_pkey PRIMARY KEY (nr);
ALTER TABLE ONLY then_0_1.results
    ADD CONSTRAINT results_pkey PRIMARY KEY (request);
ALTER TABLE ONLY then_0_1.runs
    ADD CONSTRAINT runs_id_key UNIQUE (id);
ALTER TABLE ONLY then_0_1.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (nr);
ALTER TABLE ONLY then_0_1.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (number);
ALTER TABLE ONLY then_0_1.segments
    ADD CONSTRAINT segments_id_key UNIQUE (id);
ALTER TABLE ONLY then_0_1.segments
    ADD CONSTRAINT segments_pkey PRIMARY KEY (nr);
ALTER TABLE ONLY then_0_1.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (name);
ALTER TABLE ONLY then_0_1.votes
    ADD CONSTRAINT votes_pkey PRIMARY KEY (request, place);
CREATE INDEX deliveries_live ON then_0_1.deliveries USING btree (nr) WHERE (live = 1);
CREATE INDEX deliveries_live_of_trail ON then_0_1.deliveries USING btree (trail, nr) WHERE (live = 1);
CREATE INDEX deliveries_request ON then_0_1.deliveries USING btree (request, nr) WHERE (request <> ''::text);
CREATE INDEX deliveries_trail ON then_0_1.deliveries USING btree (trail, nr);
CREATE INDEX events_request ON then_0_1.events USING btree (request, seq) WHERE (request <> ''::text);
CREATE INDEX events_run ON then_0_1.events USING btree (run, seq) WHERE (run <> ''::text);
CREATE INDEX grants_about ON then_0_1.grants USING btree (tool, memory_key, nr) WHERE (revoked = 0);
CREATE INDEX requests_call ON then_0_1.requests USING btree (call_key, nr) WHERE (call_key <> ''::text);
CREATE INDEX requests_claimed ON then_0_1.requests USING btree (nr) WHERE (state = 'claimed'::text);
CREATE INDEX requests_conversation ON then_0_1.requests USING btree (conversation, opened_at, nr) WHERE (conversation <> ''::text);
CREATE INDEX requests_deadline ON then_0_1.requests USING btree (deadline) WHERE ((state = 'pending'::text) AND (deadline IS NOT NULL));
CREATE INDEX requests_remind ON then_0_1.requests USING btree (remind_at) WHERE ((state = 'pending'::text) AND (remind_at IS NOT NULL));
CREATE INDEX requests_run ON then_0_1.requests USING btree (run, opened_at, nr) WHERE (run <> ''::text);
CREATE INDEX requests_waiting ON then_0_1.requests USING btree (opened_at, nr) WHERE (state = ANY (ARRAY['pending'::text, 'unknown'::text]));
CREATE INDEX runs_going ON then_0_1.runs USING btree (nr) WHERE (state = 'going'::text);
ALTER TABLE ONLY then_0_1.claims
    ADD CONSTRAINT claims_request_fkey FOREIGN KEY (request) REFERENCES then_0_1.requests(id);
ALTER TABLE ONLY then_0_1.decisions
    ADD CONSTRAINT decisions_request_fkey FOREIGN KEY (request) REFERENCES then_0_1.requests(id);
ALTER TABLE ONLY then_0_1.results
    ADD CONSTRAINT results_request_fkey FOREIGN KEY (request) REFERENCES then_0_1.requests(id);
ALTER TABLE ONLY then_0_1.votes
    ADD CONSTRAINT votes_request_fkey FOREIGN KEY (request) REFERENCES then_0_1.requests(id);
