-- A store as schema 0006 wrote it, with every kind of job, flags, a failure and two hosts. Made once; never to be changed.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0006');
CREATE TABLE arm_result (
	route VARCHAR, 
	arm_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	weights VARCHAR NOT NULL, 
	image_size INTEGER, 
	batch_size INTEGER NOT NULL, 
	dtype VARCHAR NOT NULL, 
	attention VARCHAR NOT NULL, 
	runtime VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	method VARCHAR NOT NULL, 
	params VARCHAR NOT NULL, 
	data VARCHAR, 
	corruption VARCHAR, 
	severity INTEGER, 
	prompt_tokens INTEGER, 
	new_tokens INTEGER, 
	kv_cache VARCHAR, 
	decoding VARCHAR, 
	condition_id VARCHAR, 
	"exclusive" VARCHAR, 
	attempt INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	arm_condition_id VARCHAR NOT NULL, 
	gmacs FLOAT NOT NULL, 
	gmacs_overhead FLOAT NOT NULL, 
	parameters BIGINT NOT NULL, 
	trainable_parameters BIGINT NOT NULL, 
	batch INTEGER NOT NULL, 
	tokens INTEGER NOT NULL, 
	tokens_final INTEGER NOT NULL, 
	threads INTEGER NOT NULL, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_arm_result PRIMARY KEY (attempt, arm), 
	CONSTRAINT ck_arm_result_image_size CHECK (image_size + 0 = image_size AND image_size < 1e308 AND image_size > -1e308 AND image_size > 0), 
	CONSTRAINT ck_arm_result_batch_size CHECK (batch_size + 0 = batch_size AND batch_size < 1e308 AND batch_size > -1e308 AND batch_size > 0), 
	CONSTRAINT ck_arm_result_prompt_tokens CHECK (prompt_tokens + 0 = prompt_tokens AND prompt_tokens < 1e308 AND prompt_tokens > -1e308 AND prompt_tokens > 0), 
	CONSTRAINT ck_arm_result_new_tokens CHECK (new_tokens + 0 = new_tokens AND new_tokens < 1e308 AND new_tokens > -1e308 AND new_tokens > 0), 
	CONSTRAINT ck_arm_result_batch CHECK (batch + 0 = batch AND batch < 1e308 AND batch > -1e308 AND batch > 0), 
	CONSTRAINT ck_arm_result_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads > 0), 
	CONSTRAINT ck_arm_result_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_arm_result_gmacs_overhead CHECK (gmacs_overhead + 0 = gmacs_overhead AND gmacs_overhead < 1e308 AND gmacs_overhead > -1e308 AND gmacs_overhead >= 0), 
	CONSTRAINT ck_arm_result_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_arm_result_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT fk_arm_result_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,1,0,'6b34df06167eee16',0.16,0.0,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,1,1,'20ea9eebc60888a7',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','latency','cpu','deit_tiny_patch16_224','random',96,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'6f1e6d94c0df507b',NULL,2,0,'bba285c813d18814',0.36,0.0,5717416,5717416,1,36,37,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',96,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'6f1e6d94c0df507b',NULL,2,1,'06e67188f72d0e2a',0.24,0.001,5717416,5717416,1,36,37,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,3,0,'1c8622a06a5eaf5d',0.64,0.0,5717416,5717416,1,64,65,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,3,1,'97f22f6b7840f3ff',4.26666666666666694052e-01,0.001,5717416,5717416,1,64,65,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,4,0,'6b34df06167eee16',0.16,0.0,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,4,1,'20ea9eebc60888a7',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','latency','cpu','deit_tiny_patch16_224','random',96,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'6f1e6d94c0df507b',NULL,5,0,'bba285c813d18814',0.36,0.0,5717416,5717416,1,36,37,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',96,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'6f1e6d94c0df507b',NULL,5,1,'06e67188f72d0e2a',0.24,0.001,5717416,5717416,1,36,37,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,6,0,'1c8622a06a5eaf5d',0.64,0.0,5717416,5717416,1,64,65,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','accuracy','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'dense','{}','digits',NULL,NULL,NULL,NULL,NULL,NULL,'d2586a727e77b951',NULL,7,0,'3adfe1b80bd347e1',0.16,0.0,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','accuracy','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','digits',NULL,NULL,NULL,NULL,NULL,NULL,'d2586a727e77b951',NULL,7,1,'dbe5d10028f35abc',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','generation','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'dense','{}','docs',NULL,NULL,64,32,'dynamic','teacher_forcing','6864f6ad9d835772',NULL,8,0,'f83890f6e6723144',19.867631616,0.0,222000000,222000000,1,64,95,2,'');
INSERT INTO "arm_result" VALUES(NULL,'5da3d264e3067c02','generation','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'larosa','{"form":"absorbed","sparsity":0.5}','docs',NULL,NULL,64,32,'dynamic','teacher_forcing','6864f6ad9d835772',NULL,8,1,'02c443b59ea16ac5',18.19967488,0.01,322000000,322000000,1,64,95,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','quality','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'dense','{}','docs',NULL,NULL,NULL,NULL,NULL,NULL,'7cd9c8dcae6693d6',NULL,9,0,'11a221fe2cceef95',6.647709696,0.0,222000000,222000000,1,0,31,2,'');
INSERT INTO "arm_result" VALUES(NULL,'5da3d264e3067c02','quality','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'larosa','{"form":"absorbed","sparsity":0.5}','docs',NULL,NULL,NULL,NULL,NULL,NULL,'7cd9c8dcae6693d6',NULL,9,1,'f057a02f28470573',4.987879424,0.01,322000000,322000000,1,0,31,2,'');
CREATE TABLE attempt (
	id INTEGER NOT NULL, 
	digest VARCHAR NOT NULL, 
	job INTEGER, 
	job_id VARCHAR NOT NULL, 
	n INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT NOT NULL, 
	project_commit VARCHAR, 
	source VARCHAR NOT NULL, 
	flags VARCHAR NOT NULL, 
	protocol VARCHAR NOT NULL, 
	system_metrics VARCHAR NOT NULL, 
	payload VARCHAR NOT NULL, 
	CONSTRAINT pk_attempt PRIMARY KEY (id), 
	CONSTRAINT ck_attempt_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_attempt_started_at CHECK (started_at + 0 = started_at AND started_at < 1e308 AND started_at > -1e308 AND started_at > 0), 
	CONSTRAINT ck_attempt_ended_at CHECK (ended_at + 0 = ended_at AND ended_at < 1e308 AND ended_at > -1e308 AND ended_at >= started_at), 
	CONSTRAINT ck_attempt_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n > 0), 
	CONSTRAINT uq_attempt_digest UNIQUE (digest), 
	CONSTRAINT fk_attempt_job FOREIGN KEY(job) REFERENCES job (id), 
	CONSTRAINT fk_attempt_environment FOREIGN KEY(environment) REFERENCES environment (environment_id)
);
INSERT INTO "attempt" VALUES(1,'2a4c88a14fa7dcec6c6ea4a6581eacfd40b92a3c90d771fa5d54ca1cd0e45607',NULL,'5a28069427b2f849',1,0,'3726d88f8db4b006','here',1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":0.16,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.10666666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(2,'aa008dbe04242ed4f52b31c19727eb7495b86443e639c45937405df14b903784',NULL,'a57a180951c4ed2a',1,0,'3726d88f8db4b006','here',1789999991.0,1790000001.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":96,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999991.0,"ended_at":1790000001.0,"arms":[{"arm":0,"gmacs":0.36,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":36,"tokens_final":37,"trace":[[37,37]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.24,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":36,"tokens_final":37,"trace":[[37,37]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(3,'41b05ec6caef5c74143222fb77d0aca44f1097d796fcc0eec2b5e894b5eaca35',NULL,'1b4be886bc371d20',1,0,'3726d88f8db4b006','here',1789999992.0,1790000002.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":128,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999992.0,"ended_at":1790000002.0,"arms":[{"arm":0,"gmacs":0.64,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.4266666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(4,'69d0c9345938d3c792b5a019d1cf350d185574d664d359ff0c905e8bc00ad120',NULL,'5a28069427b2f849',2,0,'3726d88f8db4b006','here',1790000040.0,1790000050.0,'0123abc','imported','throttled','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1790000040.0,"ended_at":1790000050.0,"arms":[{"arm":0,"gmacs":0.16,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.10666666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":["throttled"],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(5,'23eda9cbc5a608def7d5e4df0daf9553ce07bee1a346529e8ba1918294086091',NULL,'a57a180951c4ed2a',2,0,'3726d88f8db4b006','other',1790000045.0,1790000055.0,'0123abc','imported','contended','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":96,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"other","started_at":1790000045.0,"ended_at":1790000055.0,"arms":[{"arm":0,"gmacs":0.36,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":36,"tokens_final":37,"trace":[[37,37]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.24,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":36,"tokens_final":37,"trace":[[37,37]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":["contended"],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(6,'168dfd3ae6c14c22c70bf7972dad3ca24d32c80136048dbfa5ce9b4e61069e96',NULL,'1b4be886bc371d20',2,0,'3726d88f8db4b006','other',1790000050.0,1790000060.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":128,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"other","started_at":1790000050.0,"ended_at":1790000060.0,"arms":[{"arm":0,"gmacs":0.64,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[{"arm":1,"reason":"out_of_memory","message":"so","detail":""}],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(7,'54a1f1aba18fb3b7fb890714700230677630a223f036d986722f1722e324606d',NULL,'179cd49b9a43ee89',1,0,'3726d88f8db4b006','here',1790000000.0,1790000010.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"accuracy","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"digits"},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1790000000.0,"ended_at":1790000010.0,"arms":[{"arm":0,"gmacs":0.16,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.10666666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(8,'b5ec74f0e2d681c5b946689801ca1bb5173e88bdd29952c46a04cd397eea1426',NULL,'4681712a12869067',1,0,'3726d88f8db4b006','here',1789999990.0,1790000000.0,NULL,'imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{}','{"schema_version":1,"job":{"kind":"generation","condition":{"model":"llama-220m","weights":"random","image_size":null,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"docs","prompt_tokens":64,"new_tokens":32,"kv_cache":"dynamic","decoding":"teacher_forcing"},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":19.867631616,"gmacs_overhead":0.0,"parameters":222000000,"trainable_parameters":222000000,"batch":1,"tokens":64,"tokens_final":95,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"ttft","value":200.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"tpot","value":30.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"tpot_p95","value":33.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"characters","value":96.0,"unit":"1","low":null,"high":null,"n":1},{"name":"chars_per_s","value":84.95575221238938,"unit":"1/s","low":null,"high":null,"n":1},{"name":"kv_bytes_needed","value":6225920.0,"unit":"B","low":null,"high":null,"n":1},{"name":"kv_bytes_resident","value":6230016.0,"unit":"B","low":null,"high":null,"n":1},{"name":"peak_rss_isolated","value":1024.0,"unit":"MiB","low":null,"high":null,"n":1},{"name":"decode_tokens_per_s","value":33.333333333333336,"unit":"1/s","low":null,"high":null,"n":1},{"name":"peak_gb_per_s","value":30.0,"unit":"GB/s","low":null,"high":null,"n":1},{"name":"gmacs_ttft","value":13.195804672,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_overhead_ttft","value":0.0,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_tpot","value":0.21522022400000004,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_overhead_tpot","value":0.0,"unit":"GMAC","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":18.19967488,"gmacs_overhead":0.01,"parameters":322000000,"trainable_parameters":322000000,"batch":1,"tokens":64,"tokens_final":95,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"ttft","value":200.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"tpot","value":20.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"tpot_p95","value":22.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"characters","value":96.0,"unit":"1","low":null,"high":null,"n":1},{"name":"chars_per_s","value":117.07317073170731,"unit":"1/s","low":null,"high":null,"n":1},{"name":"kv_bytes_needed","value":6225920.0,"unit":"B","low":null,"high":null,"n":1},{"name":"kv_bytes_resident","value":6230016.0,"unit":"B","low":null,"high":null,"n":1},{"name":"peak_rss_isolated","value":1024.0,"unit":"MiB","low":null,"high":null,"n":1},{"name":"decode_tokens_per_s","value":50.0,"unit":"1/s","low":null,"high":null,"n":1},{"name":"peak_gb_per_s","value":30.0,"unit":"GB/s","low":null,"high":null,"n":1},{"name":"achieved_sparsity","value":0.5,"unit":"1","low":null,"high":null,"n":1},{"name":"kernel_calls","value":28.0,"unit":"1","low":null,"high":null,"n":1},{"name":"fallback_calls","value":0.0,"unit":"1","low":null,"high":null,"n":1},{"name":"gmacs_ttft","value":13.195804672,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_overhead_ttft","value":0.01,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_tpot","value":0.16141516800000003,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_overhead_tpot","value":0.0,"unit":"GMAC","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{},"flags":[],"commit":null}');
INSERT INTO "attempt" VALUES(9,'147a3e784b56fb844692974d722b27b654a895299ad29d8a38cb901c99069a44',NULL,'3b750c86f93e0773',1,0,'3726d88f8db4b006','here',1789999990.0,1790000000.0,NULL,'imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{}','{"schema_version":1,"job":{"kind":"quality","condition":{"model":"llama-220m","weights":"random","image_size":null,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"docs"},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":6.647709696,"gmacs_overhead":0.0,"parameters":222000000,"trainable_parameters":222000000,"batch":1,"tokens":0,"tokens_final":31,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[],"flags":[]},{"arm":1,"gmacs":4.987879424,"gmacs_overhead":0.01,"parameters":322000000,"trainable_parameters":322000000,"batch":1,"tokens":0,"tokens_final":31,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[],"flags":[]}],"failures":[],"system_metrics":{},"flags":[],"commit":null}');
CREATE TABLE break_even_row (
	sweep INTEGER NOT NULL, 
	curve_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	axis VARCHAR NOT NULL, 
	crossing INTEGER NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	threads INTEGER, 
	verdict VARCHAR NOT NULL, 
	x FLOAT, 
	x_low FLOAT, 
	x_high FLOAT, 
	direction VARCHAR, 
	grid_limited BOOLEAN, 
	points INTEGER NOT NULL, 
	why VARCHAR NOT NULL, 
	floor FLOAT NOT NULL, 
	analysis_version INTEGER NOT NULL, 
	metric VARCHAR NOT NULL, 
	varied_parameter VARCHAR, 
	host VARCHAR NOT NULL, 
	points_missing INTEGER NOT NULL, 
	CONSTRAINT pk_break_even_row PRIMARY KEY (sweep, curve_id, environment, axis, crossing, metric, host), 
	CONSTRAINT ck_break_even_row_axis CHECK (axis IN ('tokens', 'gmacs', 'gmacs_saved')), 
	CONSTRAINT ck_break_even_row_verdict CHECK (verdict IN ('crossing', 'always', 'never', 'unclear')), 
	CONSTRAINT ck_break_even_row_direction CHECK (direction IN ('gains', 'loses')), 
	CONSTRAINT ck_break_even_row_x CHECK (x + 0 = x AND x < 1e308 AND x > -1e308), 
	CONSTRAINT ck_break_even_row_x_low CHECK (x_low + 0 = x_low AND x_low < 1e308 AND x_low > -1e308), 
	CONSTRAINT ck_break_even_row_x_high CHECK (x_high + 0 = x_high AND x_high < 1e308 AND x_high > -1e308), 
	CONSTRAINT ck_break_even_row_points CHECK (points + 0 = points AND points < 1e308 AND points > -1e308 AND points >= 0), 
	CONSTRAINT ck_break_even_row_points_missing CHECK (points_missing + 0 = points_missing AND points_missing < 1e308 AND points_missing > -1e308 AND points_missing >= 0), 
	CONSTRAINT fk_break_even_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_break_even_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_break_even_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id)
);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','tokens',0,'fd905e978e6bb74e',2,'crossing',3.595294474499146986e+01,16.0,64.0,'gains',0,3,'Begins to pay between tokens = 16 and 64. Along tokens: slower at 16, no different at 36, faster at 64.',0.01,3,'latency',NULL,'here',0);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','gmacs',0,'fd905e978e6bb74e',2,'crossing',3.59529447449914774104e-01,0.16,0.64,'gains',0,3,'Begins to pay between gmacs = 0.16 and 0.64. Along gmacs: slower at 0.16, no different at 0.36, faster at 0.64.',0.01,3,'latency',NULL,'here',0);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','tokens',0,'3b7637d029db0b54',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along tokens: not clear at 36. All points are flagged; they count, since there are no others.',0.01,3,'latency',NULL,'other',1);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','gmacs',0,'3b7637d029db0b54',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along gmacs: not clear at 0.36. All points are flagged; they count, since there are no others.',0.01,3,'latency',NULL,'other',1);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','tokens',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along tokens: faster at 64.',0.01,3,'time_per_char',NULL,'here',0);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','gmacs',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along gmacs: faster at 19.87.',0.01,3,'time_per_char',NULL,'here',0);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','tokens',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along tokens: faster at 64.',0.01,3,'tpot',NULL,'here',0);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','gmacs',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along gmacs: faster at 0.2152.',0.01,3,'tpot',NULL,'here',0);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','tokens',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along tokens: no different at 64.',0.01,3,'ttft',NULL,'here',0);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','gmacs',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along gmacs: no different at 13.2.',0.01,3,'ttft',NULL,'here',0);
CREATE TABLE comparison (
	arm_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	weights VARCHAR NOT NULL, 
	image_size INTEGER, 
	batch_size INTEGER NOT NULL, 
	dtype VARCHAR NOT NULL, 
	attention VARCHAR NOT NULL, 
	runtime VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	method VARCHAR NOT NULL, 
	params VARCHAR NOT NULL, 
	data VARCHAR, 
	corruption VARCHAR, 
	severity INTEGER, 
	prompt_tokens INTEGER, 
	new_tokens INTEGER, 
	kv_cache VARCHAR, 
	decoding VARCHAR, 
	condition_id VARCHAR, 
	"exclusive" VARCHAR, 
	comparison_id VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	curve_id VARCHAR NOT NULL, 
	threads INTEGER, 
	baseline VARCHAR NOT NULL, 
	baseline_id VARCHAR, 
	quality_arm_id VARCHAR, 
	quality_pair_id VARCHAR, 
	payload VARCHAR NOT NULL, 
	content_hashes VARCHAR NOT NULL, 
	CONSTRAINT pk_comparison PRIMARY KEY (comparison_id), 
	CONSTRAINT ck_comparison_image_size CHECK (image_size + 0 = image_size AND image_size < 1e308 AND image_size > -1e308 AND image_size > 0), 
	CONSTRAINT ck_comparison_batch_size CHECK (batch_size + 0 = batch_size AND batch_size < 1e308 AND batch_size > -1e308 AND batch_size > 0), 
	CONSTRAINT ck_comparison_prompt_tokens CHECK (prompt_tokens + 0 = prompt_tokens AND prompt_tokens < 1e308 AND prompt_tokens > -1e308 AND prompt_tokens > 0), 
	CONSTRAINT ck_comparison_new_tokens CHECK (new_tokens + 0 = new_tokens AND new_tokens < 1e308 AND new_tokens > -1e308 AND new_tokens > 0)
);
INSERT INTO "comparison" VALUES('5da3d264e3067c02','generation','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'larosa','{"form":"absorbed","sparsity":0.5}','docs',NULL,NULL,64,32,'dynamic','teacher_forcing','6864f6ad9d835772',NULL,'127a1c6f1490a096','eba10f429923be07','efc69456288956c8',NULL,'dense','6cb99fb9c27e3323','f115d0eb9162277e','bfa3ec3697f41c5e','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"docs","decoding":"replay","device":"cpu","dtype":"float32","kv_cache":"dynamic","model":"llama-220m","new_tokens":32,"prompt_tokens":64,"runtime":"eager","seed":0,"weights":"random"},"kind":"generation"}','{}');
INSERT INTO "comparison" VALUES('5da3d264e3067c02','quality','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'larosa','{"form":"absorbed","sparsity":0.5}','docs',NULL,NULL,NULL,NULL,NULL,NULL,'7cd9c8dcae6693d6',NULL,'14904e0129d8e228','ce15f05c1a899316','0a958746b0515aa6',NULL,'dense','6cb99fb9c27e3323','f115d0eb9162277e','bfa3ec3697f41c5e','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"docs","device":"cpu","dtype":"float32","model":"llama-220m","runtime":"eager","seed":0,"weights":"random"},"kind":"quality"}','{}');
INSERT INTO "comparison" VALUES('212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',96,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'6f1e6d94c0df507b',NULL,'3b7637d029db0b54','0f87812b1d880ec3','60dee36d4c9be9e1',NULL,'dense','6cb99fb9c27e3323','485bffa1ccc84e42','49e0dae0725a4a1b','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":96,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('212af6ab5482de97','accuracy','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','digits',NULL,NULL,NULL,NULL,NULL,NULL,'d2586a727e77b951',NULL,'46ea4f3f67a49e58','80ec0f274ffde719','9fc9332c31b5a34d',NULL,'dense','6cb99fb9c27e3323','228ca9235da3e598','77c8666a8a5254aa','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"digits","device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"accuracy"}','{}');
INSERT INTO "comparison" VALUES('212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,'b9e8bb028c503621','ca7cccb30b9363f1','60dee36d4c9be9e1',NULL,'dense','6cb99fb9c27e3323','228ca9235da3e598','77c8666a8a5254aa','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,'fd905e978e6bb74e','2ebb4e69d576d0a2','60dee36d4c9be9e1',NULL,'dense','6cb99fb9c27e3323','92157f7b142a75b7','425729cf15b0dfaf','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":128,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
CREATE TABLE comparison_attempt (
	comparison_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	baseline INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	failure INTEGER, 
	CONSTRAINT pk_comparison_attempt PRIMARY KEY (comparison_id, attempt), 
	CONSTRAINT fk_comparison_attempt_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_comparison_attempt_attempt FOREIGN KEY(attempt) REFERENCES attempt (id), 
	CONSTRAINT fk_comparison_attempt_failure FOREIGN KEY(failure) REFERENCES failure (id)
);
INSERT INTO "comparison_attempt" VALUES('b9e8bb028c503621',1,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('3b7637d029db0b54',2,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('fd905e978e6bb74e',3,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('b9e8bb028c503621',4,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('3b7637d029db0b54',5,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('fd905e978e6bb74e',6,0,1,1);
INSERT INTO "comparison_attempt" VALUES('46ea4f3f67a49e58',7,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('127a1c6f1490a096',8,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('14904e0129d8e228',9,0,1,NULL);
CREATE TABLE effect_row (
	route VARCHAR, 
	comparison_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	metric VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	measured_at VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	analysis_version INTEGER NOT NULL, 
	unit VARCHAR NOT NULL, 
	compared VARCHAR, 
	floor FLOAT, 
	failure INTEGER, 
	threads INTEGER, 
	tokens INTEGER, 
	tokens_final INTEGER, 
	gmacs_baseline FLOAT, 
	gmacs FLOAT, 
	gmacs_overhead FLOAT, 
	baseline_value FLOAT, 
	arm_value FLOAT, 
	arm_low FLOAT, 
	arm_high FLOAT, 
	device_value FLOAT, 
	effect FLOAT, 
	effect_low FLOAT, 
	effect_high FLOAT, 
	n INTEGER, 
	rounds INTEGER, 
	verdict VARCHAR, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_effect_row PRIMARY KEY (comparison_id, environment, host, metric), 
	CONSTRAINT ck_effect_row_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_effect_row_compared CHECK (compared IN ('ratio', 'difference')), 
	CONSTRAINT ck_effect_row_verdict CHECK (verdict IN ('faster', 'slower', 'insufficient', 'better', 'worse', 'same', 'unclear')), 
	CONSTRAINT ck_effect_row_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_effect_row_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT ck_effect_row_gmacs_baseline CHECK (gmacs_baseline + 0 = gmacs_baseline AND gmacs_baseline < 1e308 AND gmacs_baseline > -1e308 AND gmacs_baseline >= 0), 
	CONSTRAINT ck_effect_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_effect_row_gmacs_overhead CHECK (gmacs_overhead + 0 = gmacs_overhead AND gmacs_overhead < 1e308 AND gmacs_overhead > -1e308 AND gmacs_overhead >= 0), 
	CONSTRAINT ck_effect_row_floor CHECK (floor + 0 = floor AND floor < 1e308 AND floor > -1e308 AND floor >= 0), 
	CONSTRAINT ck_effect_row_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n >= 0), 
	CONSTRAINT ck_effect_row_rounds CHECK (rounds + 0 = rounds AND rounds < 1e308 AND rounds > -1e308 AND rounds >= 0), 
	CONSTRAINT ck_effect_row_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads >= 0), 
	CONSTRAINT ck_effect_row_baseline_value CHECK (baseline_value + 0 = baseline_value AND baseline_value < 1e308 AND baseline_value > -1e308), 
	CONSTRAINT ck_effect_row_arm_value CHECK (arm_value + 0 = arm_value AND arm_value < 1e308 AND arm_value > -1e308), 
	CONSTRAINT ck_effect_row_arm_low CHECK (arm_low + 0 = arm_low AND arm_low < 1e308 AND arm_low > -1e308), 
	CONSTRAINT ck_effect_row_arm_high CHECK (arm_high + 0 = arm_high AND arm_high < 1e308 AND arm_high > -1e308), 
	CONSTRAINT ck_effect_row_device_value CHECK (device_value + 0 = device_value AND device_value < 1e308 AND device_value > -1e308), 
	CONSTRAINT ck_effect_row_effect CHECK (effect + 0 = effect AND effect < 1e308 AND effect > -1e308), 
	CONSTRAINT ck_effect_row_effect_low CHECK (effect_low + 0 = effect_low AND effect_low < 1e308 AND effect_low > -1e308), 
	CONSTRAINT ck_effect_row_effect_high CHECK (effect_high + 0 = effect_high AND effect_high < 1e308 AND effect_high > -1e308), 
	CONSTRAINT ck_effect_row_ratio CHECK (compared <> 'ratio' OR (effect > 0 AND baseline_value > 0 AND arm_value > 0)), 
	CONSTRAINT fk_effect_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_effect_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_effect_row_failure FOREIGN KEY(failure) REFERENCES failure (id)
);
INSERT INTO "effect_row" VALUES(NULL,'b9e8bb028c503621','3726d88f8db4b006','here','latency','ca7cccb30b9363f1','2026-09-21T14:13:20.000Z','imported',3,'ms','ratio',0.01,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.98409016858517261994e+00,1.43172053901384774832e+01,NULL,NULL,NULL,6.96413713103319786945e-01,0.695270602257735,7.01807174354295182361e-01,31,1,'slower','');
INSERT INTO "effect_row" VALUES(NULL,'3b7637d029db0b54','3726d88f8db4b006','here','latency','0f87812b1d880ec3','2026-09-21T14:13:21.000Z','imported',3,'ms','ratio',0.01,NULL,2,36,37,0.36,0.24,0.001,1.00039729997755451047e+01,9.98372226782325,NULL,NULL,NULL,1.00058467742126100397e+00,9.95250972944282774612e-01,1.00460036226815163651e+00,31,1,'same','');
INSERT INTO "effect_row" VALUES(NULL,'3b7637d029db0b54','3726d88f8db4b006','other','latency','0f87812b1d880ec3','2026-09-21T14:14:15.000Z','imported',3,'ms','ratio',0.01,NULL,2,36,37,0.36,0.24,0.001,9.97322609975359242184e+00,1.00186126931118533176e+01,NULL,NULL,NULL,9.95449302195427487838e-01,9.89597614545593806667e-01,1.00469149888188935548e+00,33,1,'unclear','contended');
INSERT INTO "effect_row" VALUES(NULL,'fd905e978e6bb74e','3726d88f8db4b006','here','latency','2ebb4e69d576d0a2','2026-09-21T14:13:22.000Z','imported',3,'ms','ratio',0.01,NULL,2,64,65,0.64,4.26666666666666694052e-01,0.001,1.00189232200369122689e+01,6.675253235442,NULL,NULL,NULL,1.50696596776833802167e+00,1.4894196340819583213e+00,1.5107293394391652086e+00,31,1,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'fd905e978e6bb74e','3726d88f8db4b006','other','latency','2ebb4e69d576d0a2','2026-09-21T14:14:20.000Z','imported',3,'ms','ratio',0.01,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','top1','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'%','difference',0.2,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.16666666666666571892e+01,8.33333333333333428107e+01,7.19683868363854628569e+01,9.06868230208085464045e+01,NULL,-8.33333333333333392545e+00,-1.80689420183344147119e+01,-1.81471601793415,60,1,'worse','');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','top5','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'%',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.66666666666666714053e+01,9.66666666666666714053e+01,NULL,NULL,NULL,NULL,NULL,NULL,60,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','kl','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'nat',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,6.82406659664896581007e-02,4.96862115710032248294e-02,1.69922935263115554294e-01,NULL,NULL,NULL,NULL,60,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','margin_change','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'logit',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,-4.07045795023441292492e-01,-1.11710657234214849609e+00,1.23476885199727770547e-01,NULL,NULL,NULL,NULL,60,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','margin_change_p05','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'logit',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,-5.77087543308734840508e+00,NULL,NULL,NULL,NULL,NULL,NULL,60,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','mcnemar_p','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'1',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,0.0625,NULL,NULL,NULL,NULL,NULL,NULL,60,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','only_baseline_correct','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'images',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,5.0,NULL,NULL,NULL,NULL,NULL,NULL,60,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','only_arm_correct','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'images',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,60,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','unreadable','80ec0f274ffde719','2026-09-21T14:13:30.000Z','imported',1,'images',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,60,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'127a1c6f1490a096','3726d88f8db4b006','here','time_per_char','eba10f429923be07','2026-09-21T14:13:20.000Z','imported',3,'ms','ratio',0.01,NULL,2,64,95,19.867631616,18.19967488,0.01,1.1774605284707437391e+01,8.5415767880908148868e+00,NULL,NULL,NULL,1.3797073599695102164e+00,1.37292864160901206815e+00,1.38742824049105739625e+00,30,1,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'127a1c6f1490a096','3726d88f8db4b006','here','tpot','eba10f429923be07','2026-09-21T14:13:20.000Z','imported',3,'ms','ratio',0.01,NULL,2,64,95,2.15220224000000043274e-01,1.61415168000000025516e-01,0.0,3.00319772667611708518e+01,2.00311658213359464761e+01,NULL,NULL,NULL,1.50242755516878823129e+00,1.48967191251634356596e+00,1.51104093569595021584e+00,30,1,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'127a1c6f1490a096','3726d88f8db4b006','here','ttft','eba10f429923be07','2026-09-21T14:13:20.000Z','imported',3,'ms','ratio',0.01,NULL,2,64,95,13.195804672,13.195804672,0.01,1.99712449593324635086e+02,2.00572566322218307269e+02,NULL,NULL,NULL,9.94833099652187136108e-01,9.93243717511050450141e-01,1.00178385044062800979e+00,30,1,'same','');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','bits_per_byte','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'bit','difference',0.005,NULL,2,0,31,6.647709696,4.987879424,0.01,2.12454851747320416777e+00,2.1725682701702053734e+00,NULL,NULL,NULL,0.048019752697001,3.80883501046244896115e-02,6.10860571461746548749e-02,20,1,'worse','');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','perplexity','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'1',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,3.16236515768379092597e+02,3.60178777808044628719e+02,NULL,NULL,NULL,NULL,NULL,NULL,20,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','tokens_scored','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'1',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,2000.0,2000.0,NULL,NULL,NULL,NULL,NULL,NULL,20,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','top1_agreement','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'%',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,89.75,8.82813097825903128103e+01,9.14089830028288758984e+01,NULL,NULL,NULL,NULL,20,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','kl','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'nat',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,2.37031924305483691906e-02,1.6810767412834805301e-02,3.24129791040028841786e-02,NULL,NULL,NULL,NULL,20,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','windows_skipped','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'windows',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,20,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','bytes_scored','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'B',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,7818.0,NULL,NULL,NULL,NULL,NULL,NULL,20,1,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','characters_scored','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'1',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,7758.0,NULL,NULL,NULL,NULL,NULL,NULL,20,1,NULL,'');
CREATE TABLE environment (
	environment_id VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	device_name VARCHAR NOT NULL, 
	facts VARCHAR NOT NULL, 
	CONSTRAINT pk_environment PRIMARY KEY (environment_id)
);
INSERT INTO "environment" VALUES('3726d88f8db4b006','cpu','Imaginary CPU','{"cores":"2","torch":"2.0"}');
CREATE TABLE failure (
	id INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	arm INTEGER, 
	reason VARCHAR NOT NULL, 
	message VARCHAR NOT NULL, 
	detail VARCHAR NOT NULL, 
	CONSTRAINT pk_failure PRIMARY KEY (id), 
	CONSTRAINT fk_failure_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "failure" VALUES(1,6,1,'out_of_memory','so','');
CREATE TABLE image_predictions (
	attempt INTEGER NOT NULL, 
	listing VARCHAR NOT NULL, 
	payload BLOB NOT NULL, 
	images INTEGER NOT NULL, 
	unreadable INTEGER NOT NULL, 
	classes INTEGER NOT NULL, 
	CONSTRAINT pk_image_predictions PRIMARY KEY (attempt), 
	CONSTRAINT ck_image_predictions_images CHECK (images + 0 = images AND images < 1e308 AND images > -1e308 AND images > 0), 
	CONSTRAINT ck_image_predictions_unreadable CHECK (unreadable + 0 = unreadable AND unreadable < 1e308 AND unreadable > -1e308 AND unreadable >= 0), 
	CONSTRAINT fk_image_predictions_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "image_predictions" VALUES(7,'ab',X'789CD5945DAFA2481086FF8BB74E6223A272EEAAE946E52876231F07277B018880A020827C4CE6BF0FB3BB33BBD9D93DC9267B315B375D954A75BF55FDA43E8D92AB17858FD1CB1C7D180599F7787C0D8421C83C3FCC067F043FB98D06ADC9A34A6ED120D6F387B0BE95A177F2FC2C1CBD7CFCE5C3C82BAF43231F3F7D75462F436F45199E92A00A4F3FB447FF709B7F23C20285BF97A7EF25DFB5A19FD2BBA5FF0FA557AF8C92DBA035694E127F4D9849953E7DD560EA1A15D79D324A49F7D6FB2067EA994345CE48392D3A0C5ACE8ECF164D430BCAB56940C57D9D8DDB7B4A7122AF5A70B01172FD920454396CB605501D2FB9E6ABC37D3B34D4C336441CE3E066615B1BDE4B5C0F73D2DA378BF0585726D8DDB74F31564E2939DC3B15DC7D17716D59604AE2628D6135CE3ABE8B31B314742B74E815A1E76AFA7AA4C43CF9D3492DCA31DF1CBB92C299CD2A88E746CC95BB0188ACCC430B5610267C7F56CE14AF678E00B1E60C7A58B1B5143B560BD8ECD498539FA4A99226AA0DCD427039A9D495456CBB388114D4470E35712DB0F7B90DA3CF1F7EC755F83B5C773F7ED63F41D0FCF9FC56F75F43B0FBEEFD15D79F5AE9775C0F9635E04974D7527C168F277335A47C3DA93B0B87AEB985C77175E0BABD0C10D42B49034D74A1512DFB8D92594863181B7DC277C12E44C0C5279AD86BC1E11BA5CB2C729A0832F4DBF4F29CBB664EC1E6EB23746614366AD8328407D47AC06514F3D5FDB54895F222AFC6A963F0864A679D2A0881047A86158EC5F5914C6E123982ED2A05DF90C8B30876B40AEA8511F195FE565358457B6F62E4C28DAF9D0A59C4DB4F2B08ABA0E5D04EE3549947A200B6314E38DB11C38271A36550A1ABCF3581DA16DEEE5D1BE4CA78E57AC33B84E385A08100F8C2E944DB23E269B10F75214FF8B636AE94680B3B1E701DD66CE125E56F7BD6F71E6196DCC25F97ED378AD36C18F45DC80BE68B8161F6AF66B959B69B78C33A5C5232DF3ECA7C794F6C87E112AE66EB5CAC40763ACD64A63769CCFE6C4EE9B29A5626CBDC3A27A2AE378DBC779B0BF3F36A491A6F7B408B762FA5CC6187A4EFA6B9642DAB88BC3125380804D9CA1B5A9E33596158751B730AFD2992A5EC1030EC3F1F17716DB7917CAD148D39901FFB568AC6B97C9169C1CACBBE215357F737721D7BCEFE911D62225E7BCB95EF51DE30DB75A7669B26762087CFF0C8CE4EBA2628321B90BB15D4ECBAD1E2BE45A8998D4FAAD4333B96AA4BD35F712493D93D614C523B22B6AE04F2627B2ED82A9EC67DC7C5592AB325A2ECFA5CEA26C28B229787417FFE02B5EE4794',60,0,10);
CREATE TABLE job (
	id INTEGER NOT NULL, 
	job_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	attempts INTEGER NOT NULL, 
	owner VARCHAR, 
	renewed_at FLOAT, 
	parent INTEGER, 
	queued_at FLOAT NOT NULL, 
	payload VARCHAR NOT NULL, 
	curve_group VARCHAR NOT NULL, 
	resources VARCHAR NOT NULL, 
	pinned_host VARCHAR, 
	pinned_environment VARCHAR, 
	pinned_by VARCHAR, 
	"exclusive" VARCHAR, 
	CONSTRAINT pk_job PRIMARY KEY (id), 
	CONSTRAINT ck_job_state CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled', 'split')), 
	CONSTRAINT ck_job_attempts CHECK (attempts + 0 = attempts AND attempts < 1e308 AND attempts > -1e308 AND attempts >= 0), 
	CONSTRAINT fk_job_parent FOREIGN KEY(parent) REFERENCES job (id)
);
INSERT INTO "job" VALUES(1,'5a28069427b2f849','latency','cpu','waiting',0,NULL,NULL,NULL,1.79536327095804882055e+09,'{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":null,"corruption":null,"severity":null,"prompt_tokens":null,"new_tokens":null,"kv_cache":null,"decoding":null,"exclusive":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null,"characters":null,"tasks":null,"documents":null},"content_hashes":{},"round":0}','ba463b470e646664','',NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(2,'a57a180951c4ed2a','latency','cpu','waiting',0,NULL,NULL,NULL,1.79536327095804882055e+09,'{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":96,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":null,"corruption":null,"severity":null,"prompt_tokens":null,"new_tokens":null,"kv_cache":null,"decoding":null,"exclusive":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null,"characters":null,"tasks":null,"documents":null},"content_hashes":{},"round":0}','ba463b470e646664','',NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(3,'1b4be886bc371d20','latency','cpu','waiting',0,NULL,NULL,NULL,1.79536327095804882055e+09,'{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":128,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":null,"corruption":null,"severity":null,"prompt_tokens":null,"new_tokens":null,"kv_cache":null,"decoding":null,"exclusive":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null,"characters":null,"tasks":null,"documents":null},"content_hashes":{},"round":0}','ba463b470e646664','',NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(4,'179cd49b9a43ee89','accuracy','cpu','waiting',0,NULL,NULL,NULL,1.79536327095804882055e+09,'{"kind":"accuracy","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"digits","corruption":null,"severity":null,"prompt_tokens":null,"new_tokens":null,"kv_cache":null,"decoding":null,"exclusive":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null,"characters":null,"tasks":null,"documents":null},"content_hashes":{},"round":0}','','',NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(5,'4681712a12869067','generation','cpu','waiting',0,NULL,NULL,NULL,1.79536327095804882055e+09,'{"kind":"generation","condition":{"model":"llama-220m","weights":"random","image_size":null,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"docs","corruption":null,"severity":null,"prompt_tokens":64,"new_tokens":32,"kv_cache":"dynamic","decoding":"teacher_forcing","exclusive":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0},{"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null,"characters":null,"tasks":null,"documents":null},"content_hashes":{},"round":0}','fac00e8ba8d46a76','',NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(6,'3b750c86f93e0773','quality','cpu','waiting',0,NULL,NULL,NULL,1.79536327095804882055e+09,'{"kind":"quality","condition":{"model":"llama-220m","weights":"random","image_size":null,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"docs","corruption":null,"severity":null,"prompt_tokens":null,"new_tokens":null,"kv_cache":null,"decoding":null,"exclusive":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0},{"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null,"kv_cache":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null,"characters":null,"tasks":null,"documents":null},"content_hashes":{},"round":0}','','',NULL,NULL,NULL,NULL);
CREATE TABLE metric_row (
	attempt INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	metric VARCHAR NOT NULL, 
	value FLOAT NOT NULL, 
	unit VARCHAR NOT NULL, 
	low FLOAT, 
	high FLOAT, 
	n INTEGER, 
	CONSTRAINT pk_metric_row PRIMARY KEY (attempt, arm, metric), 
	CONSTRAINT ck_metric_row_value CHECK (value + 0 = value AND value < 1e308 AND value > -1e308), 
	CONSTRAINT ck_metric_row_low CHECK (low + 0 = low AND low < 1e308 AND low > -1e308), 
	CONSTRAINT ck_metric_row_high CHECK (high + 0 = high AND high < 1e308 AND high > -1e308), 
	CONSTRAINT ck_metric_row_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n >= 0), 
	CONSTRAINT fk_metric_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "metric_row" VALUES(1,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(3,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(3,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(4,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(4,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(6,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(7,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(7,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(8,0,'ttft',200.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'tpot',30.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'tpot_p95',33.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'characters',96.0,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'chars_per_s',8.49557522123893846775e+01,'1/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'kv_bytes_needed',6225920.0,'B',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'kv_bytes_resident',6230016.0,'B',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'peak_rss_isolated',1024.0,'MiB',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'decode_tokens_per_s',3.33333333333333357026e+01,'1/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'peak_gb_per_s',30.0,'GB/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,0,'gmacs_ttft',13.195804672,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(8,0,'gmacs_overhead_ttft',0.0,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(8,0,'gmacs_tpot',2.15220224000000043274e-01,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(8,0,'gmacs_overhead_tpot',0.0,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(8,1,'ttft',200.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'tpot',20.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'tpot_p95',22.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'characters',96.0,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'chars_per_s',1.17073170731707307365e+02,'1/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'kv_bytes_needed',6225920.0,'B',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'kv_bytes_resident',6230016.0,'B',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'peak_rss_isolated',1024.0,'MiB',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'decode_tokens_per_s',50.0,'1/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'peak_gb_per_s',30.0,'GB/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'achieved_sparsity',0.5,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'kernel_calls',28.0,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'fallback_calls',0.0,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(8,1,'gmacs_ttft',13.195804672,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(8,1,'gmacs_overhead_ttft',0.01,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(8,1,'gmacs_tpot',1.61415168000000025516e-01,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(8,1,'gmacs_overhead_tpot',0.0,'GMAC',NULL,NULL,NULL);
CREATE TABLE sample (
	attempt INTEGER NOT NULL, 
	rounds INTEGER NOT NULL, 
	columns INTEGER NOT NULL, 
	arms VARCHAR NOT NULL, 
	"inner" VARCHAR NOT NULL, 
	stopped VARCHAR NOT NULL, 
	seconds BLOB NOT NULL, 
	device_seconds BLOB, 
	run_order BLOB NOT NULL, 
	CONSTRAINT pk_sample PRIMARY KEY (attempt), 
	CONSTRAINT fk_sample_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "sample" VALUES(1,31,2,'[0, 1]','[1, 1]','half_width',X'780101F0010FFEC0FA1FDD7981843FBBE928D0F0378D3FCE926378909C843FB0973785B0498D3FC5098FDEDE5E843FDE3CBFDFF55C8D3F00E209E2B1BF843FA777EDAB19898D3F41F81C101D56843F6E1299D7A5E38C3FBBB6F8D84D5A843F639827A9EC448D3FC90F91396302843F82A4EB9875318D3F9ECB0FB0F639843F995C1BEE2E0B8D3FA47ED1336C5E843FFF0AF9F72C2A8D3F0A2D627A8190843F20AE60C851908D3F799AA6392574843FB2C6CE75E0A88D3FC5A02CD11E58843F112C70D0335C8D3F913A206576AA843F304BCE8CDF488D3F3F2219350B54843FF593D92F1CFD8C3F9D47A3D3EF62843F41B75DC756528D3F61B62A973646843F1249ED942D328D3FCFFC08E68972843FFF9A425C726A8D3F31AFFF7A2586843F36B276237E5C8D3F104DF55DB658843F6D29748420388D3FEC9094F924A4843FD365D1FE85B28D3FB3E2D4534839843FCC308CDF14B48D3FE94EC96BEBC1843FD7E2FA9F937C8D3FB113DF70C388843F81D985685A2A8D3F718E21DCE1C7843FEE7830D718D68D3F09D94A8E31DA843F221A0D66FAA48D3F0952438AA68D843F0D125845DFE78C3F3968BC7FA57A843F6E12E8BE28738D3F2F3DC419C437843F767808287B5F8D3F37CB2F3B7791843F837AA09024768D3FDFD6070B2A3D843F157F008A6E108D3F39992E4F0C64843F7F32440FB9EA8C3F4A7EE593',NULL,X'78018DCB410A00300803C1FAFF4F17D1B9040AF5B26E3475666AD9E89D63E6E9FE7EA98F7A1C334FF787AFBB1C2F10440020');
INSERT INTO "sample" VALUES(2,31,2,'[0, 1]','[1, 1]','half_width',X'78010D906D4893010084150AB165C30A96831C3844889258C47022277DD82C59698D658DE94A90E55CB9909234456F03755966109364D3C8B9290A8194AB1C1425583657B2C2BE84B1CCCA94421B681FEFAFFBF3703C77FB9B92FA12AE106699F6405A2FE1CE1BF5653B88E90FC68D714AA2C091B170D547A8AC5941ED75229013F64F1808E5EF74D759276178955291D0462842FF3E16B510BAADB783865AC293EEC876DD24B69F73279B8E117D5EB1EDB895E8EA552C798DC4CADDD998A193783D38675F16F861C9D791F60A622936D6292A221E86358F4C95448751DEAEB9448C9BD71D3A6F264ADEAF19DB162036A94F3AE6878868C313DB9D1F4D38BCD8AC7BBA45F0AE9BE818A922A83F3D385E4674B7A54D4AECC4BE83B2827C2177F7FCBA96F28D5874EAFB3FE712EB99379C5A4EBC9D514F6F9E25363C9FD4446F09BE032BDAC75DC29E798B34AE94582828BE98992EF4D955615F1351585F93E36C209CF1CAFBDF5544AC25C99CA923FC11F780F402117FAA2770239F48545C8EF9AB89E5C4D6AA483D91591BFA3B2AEC9D3A2195950BBD2514CBA5C20FB933B667412FF1EE53A3C3DF2AFC60F1AC661C217E86A27A633751B6B772CE23F0A9CB6AC50E814B3BFAE6E5EA1EA2FA815B27EA27BE88246BA76A088B3C9C1CCA22C443852FAC678852D31FD7BD3A22D2B8D3B5AB99F80F5C10EB18',NULL,X'780163648000460234481A9F1A981C2E75B8E4D1C571F161E2301A660F8C8F8B86A943A701103C0020');
INSERT INTO "sample" VALUES(3,31,2,'[0, 1]','[1, 1]','half_width',X'780101F0010FFEEDCD911CCD84843F2B13F42A0F2A7B3FFA0260AB4465843FAF1FE6FDE6A57A3F857B293717DA843F90BC2EF0F29E7B3FA707B4A0D869843F802B243BCF847B3F086B08F0A489843F6F3E200EE6277B3FCE9B3B4F62AE843F77FA9EB3D4387B3F93F5E320AB69843F2CCD11B059177B3FD6901D89C992843FDF7B5B5E93477B3FC7A6FD028C97843F3F5EF99D30247B3FDB014E9D8881843F63982ADE68107B3FA0ACEFE12EA7843F931A2DE4A95B7B3F001274783D8C843F3CA62F0F436B7B3F03E4D9732746843F54BDC04D78857B3F6DB3D6B4D3E7843FD35EAD88E7DC7A3FFA4ED912FD20843F72BB045019E67A3F736BDFCC2EA7843F4A7C6BA582577B3F175B3BDDB8B3843FDD073AEC30817B3F0E833781EE85843F21DD36FE63627B3F2F1ADFB9FC71843F65D90D177B8B7B3F915ECED0FB3F843F428A8B2614317B3F7107FDE9A187843FEED31D8293CD7B3F25B673EFF352843F9F81E3FA7A037B3F51026D386E5D843F26DA39D897927B3FC97CF7CA926E843FF8D36073B3AB7B3FC097ED759E19843FB22E2CCDD79D7B3FCEC762236BB1843F4CB3A1EE08EC7A3FD5B87534F082843FFD336C5403A47B3F8F560BD47D7F843FEF51C6C8BD947B3FED5D95FCE1F8843F2195C4A2AE617B3FA1BCB452336C843F781D4F40D0187B3FF242A4B3F79C843F88A2B88BC4407B3F3F2DEE72',NULL,X'7801636060606004621000D130362E3E2E71983E741AA61E9D86A98389A3F30989C3E471D130F36034BA3A0010280020');
INSERT INTO "sample" VALUES(4,30,2,'[0, 1]','[1, 1]','half_width',X'780101E0011FFE68127BCAF17A843F697B7DD03C588D3F4EAA18E7866C843F54CD57C16BFF8C3F1B16E6A41863843F29842549ECF78C3F286EAEC1087E843F389F0052E2A68D3F5867423A2361843F40343BFC7F138D3FFC891DF59F94843F4A82F8469B5C8D3F721341DF6880843F8372C01976FC8C3F0ED7E1B95879843FBFB4474916768D3F9F069041E034843FC41A6ADAA11F8D3FAFF4948B2418843F2C26AD4EDDE18C3FCF6D132C341B843FD6F8CAC73D308D3FA7E09840D938843FE5B330632C568D3F0078A8CE1A83843F312B6A41D7338D3FEF4AA16E93F8833FE8D6190297198D3FE35F1B785678843FBB757EED514A8D3F9A375778442B843FB75CF189211E8D3FD34EECDDD347843FC3C52B0D7E058D3F449F3238CCB2843F38F962D396058D3F72061FDA2C79843FFB56B0935C848D3FFA3DC7235F5C843F03F98B8A77398D3F32364CB9AC80843FE7B221749B468D3F07EDD6290B3B843F41297D9488478D3F1B6F80929BC2843F7D51D985D7CE8C3F3167886C21A8843FBDC250F8C54A8D3FF5D7572A5B59843F3697BD3B2AD98D3F0454B53FFFA2843F74D2B8558AE88C3FD108E9CAC97E843FBB429B7B256D8D3FED8F1EE1FD70843F2722890527758D3FFE98E7CB6477843F0F68D8ABF8738D3F8C61DE57D8C6843F86FC1AA9640F8D3FBDECDD96',NULL,X'78016364400046201384410046C3D8E87C42E23079184D483F4C1E174DAE39E8FA000F40001F');
INSERT INTO "sample" VALUES(5,33,2,'[0, 1]','[1, 1]','half_width',X'78010D916B48137014C50BAD16999229184529A9A9F351A6A0429E7C3B28124DAA3562949AAF8C11DA98910447670C51C3C7075396AB2C0D7B90CD466C1A09120AF91CA5B6127A10B339B55691D6FFEBBD8773CFFD9DD8E24EFB4A1691E27ECBA8D7128A9036D96020316EAFCBCE6B27EA96F435E146C2248D0F8B3947B4C50FB457351271B97EEAADB5C4AE33DA91C402A269786ECBEC5162E3D47274DE362227F0FBEB534384734DBBE7AC9A2895FAAF8CAEABC6B06551ABBC4BD8A2C2862AAE136936FBF19A93C4A6C76F8BF25F11B39D23FBCE2B097B4A8CA7759450AB2E1CDC2CFC1DBE4B650612CF271A83BBA4447DB8FFDF4817D19092F071B99CB8AA88CA32095DC2036B6DC31D22E98B5797FC08A137CDDFC830102551AE99C943C4C399374A5D2B5179BF2FB4349508F89CDCA3DA4924EE7FA9B19E26065532EF47914448C9CF2997D0958DED8D70BF42F405CD17DC6B26BE4D78CA7AAA08DF0D7F9214858459B2FC412EF63717D283E54F888EEEFE16998A30E45BFC7D72881701D185E999C4EE555547EA4522D3E9DCDE2FE6E16B1EBAA2F744B7C7C0D34B22D73387AE5A934C18179B1C73C5444B6FB9C45BF05F73AA2DD652C1F9D8E1E94FC247327C7BDC2CFA729BDD91512DEEDB8C69D9A1BD44FAAFCAF5331984E644AC975F05D1C97F11D37262ECC762EE824EE47BE71E64AE270E187C2E7788FFCA0AE35A6B7E13BDE3ABD72605D766B7AF4C14DCFF031998F957',NULL,X'780163644000462013844180108D4B0D4C1F2E799838BA3A181F46C3D4914AA3EB87F16134CC3C181F46030012480022');
INSERT INTO "sample" VALUES(6,12,1,'[0]','[1]','half_width',X'78010160009FFFA4F383448820843FD50182874435843FCDB459940034843F9C97F43D7A68843FFADF367C0603843F793B7C56FC70843F595BB1DCEE48843FB347FBB9F0A9843F83812F8149AD843F0CE6C78A62C4843F6595F7B745A3843F22340DB71978843F85E02CFD',NULL,X'78016360200D000000300001');
INSERT INTO "sample" VALUES(8,30,2,'[0, 1]','[1, 1]','half_width',X'780101E0011FFE99BF6AC91339F23FBFB44C656176EA3FD366A1EBFA17F23F389AA81E47DEE93F681CA9D23B0EF23F6EB28B5AF209EA3F70765C4C18D3F13F3040E2E8D24EEA3F7F35C84D3DFAF13F8D237A549EF8E93F64E35BAE74E4F13F4003CCB67E4FEA3F2817C3611C25F23F3D749C83DD96EA3F8BA29004D613F23FAEA19571CA83EA3F6FD3D33AD755F23FF0758ED0258BEA3F99970D7749A8F13F2CFBEE377C90EA3FB85FFDD83924F23F3D2D8B8CF759EA3FD1B2C4B1B125F23F5A9776643357EA3FF7310FA44923F23F1ABA06995F25EA3F9B4D5F774BBDF13F737408B12036EA3F16BF10B46DEFF13FF7F4FA826486EA3F1A45573F2207F23F942D49BC0C43EA3FFB5FC39E52EDF13FDDC5D7063A1BEA3F7EB3D23BF213F23FA0E6C8F065DAE93F882D42086B22F23F80D921855136EA3FD443155CECDDF13FB83C98AE419EE93F44DDF09B492CF23F9FD89FCC7A29EA3F1631BB7803FCF13FB77F1F5D982DEA3F47C426CF5269F23FE71C8D71183AEA3F760D1BAB7D18F23FE5F13F2D49DAE93FA9E6D5B55B61F23F1C8E26F55A7BEA3F22EF50932046F23F820684A5A440EA3F034C0A2C1A3FF23F807A12876756EA3F7418B4D2F230F23FECF40E6C3933EA3F4AFB5BFCC2D0F13F1C096DD0E882EA3F8A87911CC8BBF13F9553DF7A572DEA3F14EAF290',NULL,X'7801636440004620138441009DC626864D3D4C1DBA7E181F260FA361E2E8344C1E46C3E4617C188D2E8E8B0F1307000F44001F');
CREATE TABLE sample_series (
	attempt INTEGER NOT NULL, 
	metric VARCHAR NOT NULL, 
	seconds BLOB NOT NULL, 
	CONSTRAINT pk_sample_series PRIMARY KEY (attempt, metric), 
	CONSTRAINT fk_sample_series_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "sample_series" VALUES(8,'time_per_char',X'780101E0011FFE21AAE3611A4C883F2A2333EE40A4813F19892C3AF91F883FD0667014DA3E813F8BD0366EFA12883F49CC07E7F65B813FEB9DD06520C4873F75D596F0E189813FFFF10ABD51F8873F5EC2A68D6950813FDAD9CF3D46DB873F8057DD79548A813FE01E042D7B31883F7E4D6802E9B9813FB9D8C0B0721A883FC96B0EA131AD813F94C46F4E7472883FA04EB43519B2813F21CABC9E0C8B873FC8FC4925A8B5813FF5D451214D30883F7E7307B34F91813F17995B424232883F910F4F98778F813F49EDBEDA0C2F883F67D159BB3F6E813F7967D4490FA7873FA24DB0206B79813FC8FEC09AE7E9873FFA4DA7ACEDAE813FCE061FFF8209883F631E867D0882813FA42AAFD318E7873F3ED98F047C67813FFD99C34F981A883F6B44DBF5433C813F60E7020BE42D883F009116AE8B79813F1B05C77A90D2873F25D3BAC92B14813FB0D1EBCF0C3B883F6A906A88FC70813F7341A44BAFFA873F7AAABFE8BA73813FB40589696E8C883F9A68B34B107C813F9DBCCE8EA720883FEE4BD5C8303C813F8C331D9DCF81883FBD5EC4F891A7813F82E96BC4805D883FAC59ADC36D80813F041063E52254883F00A761AFEF8E813F45CB9AC34341883FF34D5F9D7B77813F0E4F25FB03C1873F13069E359BAC813F0E0AC2D00AA5873F0E8D3FA78F73813FE821DFF5');
INSERT INTO "sample_series" VALUES(8,'tpot',X'780101E0011FFED5E5C57612969E3F582316F1E73D943F5BE746574E429F3F75ED6AC1F160943F7C94F9DB3BD29E3FEED6D442576D943F6923DB2DD7359F3F5107526090C0943F3BEE1F7549EA9E3FE58A24BC9D08943FE23195AC69BC9E3F85233500D99E943FB05C9C23AC079F3F9D922E71955A943F10D93211EC489F3F6F18C33F1B36943FA039988E77849E3F4137942A22AC943FB39018C32DBC9E3F209649D2EBE4943FAB0F76E428C79E3FB20ED88AC959943F659501E5AE9A9E3FDE0453C6FB41943FC35BD5737A549E3FB1FE093F099C943FF6B50A6628E69E3FB81A008231BF943F8B5924E0327D9E3F91D472A530D4943FD002E358C0A19E3F0C1080DA13CE943FE6BC119E5B969E3FD6EFCA007654943F23D3B50CFDCB9E3F3C1715DA3CB1943F8612FA14FEC49E3F22E37E68455C943F5FEABADF8B4F9E3FF7348099E931943F14FFE5BDF3DF9E3FFF17A7EF06AF943FE67BDAF268AB9E3F87065895DA42943F17EE9B8747FD9E3F379896AC2D38943FF362860671809E3FEF1828608A9B943F06EA117756099E3F7E6873132D8F943FF0A3ADEEB58A9E3F235D19CF9C80943F7D90776C5EB29E3F7661BAC17C85943F22E409111AEF9E3F5EBAB11C4553943F565B914ADE289F3F230C573616A1943FA780625DF4FA9E3FF545203C4FB8943FDA21E424');
INSERT INTO "sample_series" VALUES(8,'ttft',X'780101E0011FFE70F96754D8A1C93F84CC23B6F290C93F82777C96B4C3C93FBAA490747AA0C93F37CC32969676C93F4255C72357B1C93F805A8C5A9EEFC93FB2C86F76F6D7C93F51362454A46BC93F20F0A51C3147C93F6AE4364FE170C93F57A502144F9CC93FBC53F507FC02C93FF12FCEE5468BC93F86BE135C7448C93F06F15710C969C93F4DDEC5400776C93F9FE9F958E784C93F4DB8FAD8A1B4C93F5C98548F47DEC93F184110882E91C93FDCED1467C4F3C93FF7C87785266EC93F8F266256ADB0C93F354968FE13D5C93FCA81349BC39FC93FD06A5F020E69C93F7661DEA9785DC93F84198CC8AB7BC93F580072EE0BA8C93FFA63F53CC457C93FF09F4FE2E78BC93F033C8B5F2C8FC93F9F47BA1024BDC93FFD9ABFD9AEA7C93FEFDB075FEEB0C93F54A072F5E36EC93F3FA4E5731C91C93F27B5F9372ECDC93F1839F73E35FCC93F601BCA689A47C93FB2AA9A4392FDC93FA4A2BB4666F2C93F7C86FB2B01CDC93F9DD8164DF4AAC93F501E751B0F85C93F0DF22953DAF9C93FD0694ABC551BCA3F4C8FDDF1BD10CA3FDD764B195BF0C93F8C26D42C10B1C93FCB0FAD5CE34AC93F4882ABDF4E99C93F20100BA7C3C4C93F7B4C3520B545C93F676907C38BB3C93F05BEFB09D5B5C93F326B8CFE5FC7C93F98CCC98D744CC93F326FC0B8606EC93F4119F582');
CREATE TABLE sweep (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	text VARCHAR NOT NULL, 
	question VARCHAR NOT NULL, 
	settings VARCHAR NOT NULL, 
	submitted_at FLOAT NOT NULL, 
	CONSTRAINT pk_sweep PRIMARY KEY (id), 
	CONSTRAINT uq_sweep_name_revision UNIQUE (name, revision), 
	CONSTRAINT ck_sweep_revision CHECK (revision + 0 = revision AND revision < 1e308 AND revision > -1e308 AND revision > 0)
);
INSERT INTO "sweep" VALUES(1,'sixth',1,'text','Does it pay?','{}',1.79536327094445371634e+09);
CREATE TABLE sweep_comparison_row (
	sweep INTEGER NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	CONSTRAINT pk_sweep_comparison_row PRIMARY KEY (sweep, comparison_id), 
	CONSTRAINT fk_sweep_comparison_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_comparison_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id)
);
INSERT INTO "sweep_comparison_row" VALUES(1,'127a1c6f1490a096');
INSERT INTO "sweep_comparison_row" VALUES(1,'14904e0129d8e228');
INSERT INTO "sweep_comparison_row" VALUES(1,'3b7637d029db0b54');
INSERT INTO "sweep_comparison_row" VALUES(1,'46ea4f3f67a49e58');
INSERT INTO "sweep_comparison_row" VALUES(1,'b9e8bb028c503621');
INSERT INTO "sweep_comparison_row" VALUES(1,'fd905e978e6bb74e');
CREATE TABLE sweep_job (
	sweep INTEGER NOT NULL, 
	job INTEGER NOT NULL, 
	CONSTRAINT pk_sweep_job PRIMARY KEY (sweep, job), 
	CONSTRAINT fk_sweep_job_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_job_job FOREIGN KEY(job) REFERENCES job (id)
);
INSERT INTO "sweep_job" VALUES(1,1);
INSERT INTO "sweep_job" VALUES(1,2);
INSERT INTO "sweep_job" VALUES(1,3);
INSERT INTO "sweep_job" VALUES(1,4);
INSERT INTO "sweep_job" VALUES(1,5);
INSERT INTO "sweep_job" VALUES(1,6);
CREATE TABLE text_scores (
	attempt INTEGER NOT NULL, 
	listing VARCHAR NOT NULL, 
	payload BLOB NOT NULL, 
	windows INTEGER NOT NULL, 
	characters INTEGER NOT NULL, 
	complete BOOLEAN NOT NULL, 
	CONSTRAINT pk_text_scores PRIMARY KEY (attempt), 
	CONSTRAINT ck_text_scores_windows CHECK (windows + 0 = windows AND windows < 1e308 AND windows > -1e308 AND windows > 0), 
	CONSTRAINT ck_text_scores_characters CHECK (characters + 0 = characters AND characters < 1e308 AND characters > -1e308 AND characters >= 0), 
	CONSTRAINT fk_text_scores_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "text_scores" VALUES(9,'ab',X'789CC593DD8EA24A1485DF855B3A11111DED642E0A10440129111A98CC45818858080828EA64DE7D6AEBE93E4F70CE9090D4C7FE59BB5615BFB83E2F7755DF72EFA2F0C61579DBE565C6BD7324E6DEB8F8DEA52CC21DF01CA125961152458411DA200321DB43EC9181E798F1DC521837AF38CB5780E51BB00DF5F2337E01263D638BB27ECA117892B1886D41BFEF4C36399086245DDA80769681F61CB41F908B41CB662F5279285033D046D0BB7AC5411B587E6A59502FA3AFD908CC6685A09D018F7BD0469FDAA43931D51FBF60C1BD334BCAA26053744A9C2C0E24CF281A8896DBEDF2B386972B523653F7626C90B21DF8E2417573AA485E761D87957FC7DA7DBBFD10C6ABA043C3E663CDCB3ECD3D5522A45D8A377E85D51911742F4ECA039AC624748CFABAF7D4416C54687A38AFF052109159A1CE9091BF0EECBB54F51955CA76A4AB05CFDBD894FBCEB0794B1FA2A2D171B34BC51D558C93D4B9B3C38786EDA3AF6FB3369696E8742D94F210363B01C58B6C6F1DF99D80D177D87157D1B404A723F040C770A81496FF1D33A77FBFFD63F1F0D3E248B656B930AE33411EED83A0AD4FB986B54B5664FDD4AC7CB417DAF9DE8BC55C50AA81595075533FB09C9ABA383146CCE2A5D4FA655486CC629CA89A781C1266E1289A8C25D5181528D7A4538F68B3A7F203E9336379CA575829CFE6C08F06958C5AEA6AAAC9ABCC627C5B58C4A4973536869A7D19CBC9698CC2B129A1DD6AC12C147CD74AD3886858311C9F369B3BB3F832E7EDF3AA347782E2D67DB9D984D1F0EF5AFCF38DAB49DEBCEE734CDAB4C8CBF479A93F9DAFAB36EFF2EAFF9F8D8D9035291B86FB800F9A0069012C03C8D0A42FF6E1FFD44260F28C3FDBCC819F1D5FF50970F215D7E8BFF55FFD9FB214AE9A267403278AE3E0F8D0C3CC9B2AAEB07722D9EDB7B7BE7F24B36E547B8E16ED73B59D90309C3AEE06398B981A47A1D0E3706A5DBBF37A72A7DDF6DA1EB7DE4CCB7ACF09C2DBE2783B4BB53795E6C1D9592B976F8FFE750C4975AA8BB463FBDD93A24D7FFF013411A511',20,7758,0);
CREATE INDEX ix_comparison_question_id ON comparison (question_id);
CREATE INDEX ix_comparison_curve_id ON comparison (curve_id);
CREATE INDEX ix_comparison_method_model_image_size ON comparison (method, model, image_size);
CREATE INDEX ix_job_curve_group_resources ON job (curve_group, resources);
CREATE INDEX ix_job_job_id ON job (job_id);
CREATE INDEX ix_job_state_id ON job (state, id);
CREATE INDEX ix_sweep_comparison_row_comparison_id ON sweep_comparison_row (comparison_id);
CREATE INDEX ix_sweep_job_job ON sweep_job (job);
CREATE INDEX ix_attempt_job ON attempt (job);
CREATE INDEX ix_attempt_job_id ON attempt (job_id);
CREATE INDEX ix_break_even_row_curve_id_environment ON break_even_row (curve_id, environment);
CREATE INDEX ix_arm_result_arm_condition_id ON arm_result (arm_condition_id);
CREATE INDEX ix_failure_attempt ON failure (attempt);
CREATE INDEX ix_comparison_attempt_attempt ON comparison_attempt (attempt);
CREATE INDEX ix_effect_row_question_id_environment_host_measured_at ON effect_row (question_id, environment, host, measured_at);
CREATE VIEW effect AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, effect_row.host, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.baseline, comparison.baseline_id, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, comparison.curve_id, effect_row.metric, effect_row.unit, effect_row.compared, effect_row.threads, effect_row.tokens, effect_row.tokens_final, effect_row.gmacs_baseline, effect_row.gmacs, effect_row.gmacs_overhead, effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0) AS gmacs_total, 1 - (effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0)) / (nullif(effect_row.gmacs_baseline, 0.0) + 0.0) AS gmacs_saved, effect_row.baseline_value, effect_row.arm_value, effect_row.arm_low, effect_row.arm_high, effect_row.device_value, effect_row.effect, effect_row.effect_low, effect_row.effect_high, effect_row.n, effect_row.rounds, effect_row.verdict, effect_row.floor, effect_row.flags, effect_row.analysis_version, effect_row.route 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment 
WHERE (effect_row.effect IS NOT NULL OR effect_row.baseline_value IS NOT NULL OR effect_row.arm_value IS NOT NULL) AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW speedup AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, effect_row.host, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.baseline, comparison.baseline_id, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, comparison.curve_id, effect_row.metric, effect_row.threads, effect_row.tokens, effect_row.tokens_final, effect_row.gmacs_baseline, effect_row.gmacs, effect_row.gmacs_overhead, effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0) AS gmacs_total, 1 - (effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0)) / (nullif(effect_row.gmacs_baseline, 0.0) + 0.0) AS gmacs_saved, effect_row.baseline_value AS baseline_ms, effect_row.arm_value AS arm_ms, effect_row.device_value AS device_ms, effect_row.effect AS speedup, effect_row.effect_low AS speedup_low, effect_row.effect_high AS speedup_high, effect_row.n AS pairs, effect_row.rounds, effect_row.verdict, effect_row.floor, effect_row.flags, effect_row.route 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment 
WHERE effect_row.compared = 'ratio' AND effect_row.effect IS NOT NULL AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW accuracy AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.method, comparison.params, comparison.baseline, comparison.baseline_id, comparison.dtype, comparison.attention, comparison.data, comparison.seed, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, comparison.corruption, comparison.severity, comparison.image_size, effect_row.tokens, effect_row.tokens_final, effect_row.gmacs_baseline, effect_row.gmacs, effect_row.gmacs_overhead, effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0) AS gmacs_total, 1 - (effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0)) / (nullif(effect_row.gmacs_baseline, 0.0) + 0.0) AS gmacs_saved, 0 - effect_row.effect AS top1_drop, 0 - effect_row.effect_high AS top1_drop_low, 0 - effect_row.effect_low AS top1_drop_high, CAST(effect_row.n AS INTEGER) AS images, CAST(unreadable.arm_value AS INTEGER) AS unreadable, CAST(only_baseline_correct.arm_value AS INTEGER) AS only_baseline_correct, CAST(only_arm_correct.arm_value AS INTEGER) AS only_arm_correct, effect_row.baseline_value AS top1_baseline, effect_row.arm_value AS top1, effect_row.arm_low AS top1_low, effect_row.arm_high AS top1_high, top5.baseline_value AS top5_baseline, top5.arm_value AS top5, mcnemar_p.arm_value AS mcnemar_p, kl.arm_value AS kl, kl.arm_low AS kl_low, kl.arm_high AS kl_high, margin_change.arm_value AS margin_change, margin_change.arm_low AS margin_change_low, margin_change.arm_high AS margin_change_high, margin_change_p05.arm_value AS margin_change_p05, effect_row.verdict, effect_row.floor, effect_row.flags 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment LEFT OUTER JOIN effect_row AS top5 ON top5.comparison_id = effect_row.comparison_id AND top5.environment = effect_row.environment AND top5.host = effect_row.host AND top5.metric = 'top5' LEFT OUTER JOIN effect_row AS mcnemar_p ON mcnemar_p.comparison_id = effect_row.comparison_id AND mcnemar_p.environment = effect_row.environment AND mcnemar_p.host = effect_row.host AND mcnemar_p.metric = 'mcnemar_p' LEFT OUTER JOIN effect_row AS kl ON kl.comparison_id = effect_row.comparison_id AND kl.environment = effect_row.environment AND kl.host = effect_row.host AND kl.metric = 'kl' LEFT OUTER JOIN effect_row AS margin_change ON margin_change.comparison_id = effect_row.comparison_id AND margin_change.environment = effect_row.environment AND margin_change.host = effect_row.host AND margin_change.metric = 'margin_change' LEFT OUTER JOIN effect_row AS margin_change_p05 ON margin_change_p05.comparison_id = effect_row.comparison_id AND margin_change_p05.environment = effect_row.environment AND margin_change_p05.host = effect_row.host AND margin_change_p05.metric = 'margin_change_p05' LEFT OUTER JOIN effect_row AS unreadable ON unreadable.comparison_id = effect_row.comparison_id AND unreadable.environment = effect_row.environment AND unreadable.host = effect_row.host AND unreadable.metric = 'unreadable' LEFT OUTER JOIN effect_row AS only_baseline_correct ON only_baseline_correct.comparison_id = effect_row.comparison_id AND only_baseline_correct.environment = effect_row.environment AND only_baseline_correct.host = effect_row.host AND only_baseline_correct.metric = 'only_baseline_correct' LEFT OUTER JOIN effect_row AS only_arm_correct ON only_arm_correct.comparison_id = effect_row.comparison_id AND only_arm_correct.environment = effect_row.environment AND only_arm_correct.host = effect_row.host AND only_arm_correct.metric = 'only_arm_correct' 
WHERE effect_row.metric = 'top1' AND effect_row.effect IS NOT NULL AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW quality AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.method, comparison.params, comparison.baseline, comparison.baseline_id, comparison.dtype, comparison.attention, comparison.data, comparison.seed, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, CAST(effect_row.n AS INTEGER) AS windows, CAST(windows_skipped.arm_value AS INTEGER) AS windows_skipped, CAST(bytes_scored.arm_value AS INTEGER) AS bytes, CAST(characters_scored.arm_value AS INTEGER) AS characters, CAST(tokens_scored.baseline_value AS INTEGER) AS tokens_baseline, CAST(tokens_scored.arm_value AS INTEGER) AS tokens, effect_row.baseline_value AS bits_per_byte_baseline, effect_row.arm_value AS bits_per_byte, effect_row.effect AS bits_per_byte_change, effect_row.effect_low AS bits_per_byte_change_low, effect_row.effect_high AS bits_per_byte_change_high, perplexity.baseline_value AS perplexity_baseline, perplexity.arm_value AS perplexity, top1_agreement.arm_value AS top1_agreement, top1_agreement.arm_low AS top1_agreement_low, top1_agreement.arm_high AS top1_agreement_high, kl.arm_value AS kl, kl.arm_low AS kl_low, kl.arm_high AS kl_high, effect_row.verdict, effect_row.floor, effect_row.flags 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment LEFT OUTER JOIN effect_row AS perplexity ON perplexity.comparison_id = effect_row.comparison_id AND perplexity.environment = effect_row.environment AND perplexity.host = effect_row.host AND perplexity.metric = 'perplexity' LEFT OUTER JOIN effect_row AS top1_agreement ON top1_agreement.comparison_id = effect_row.comparison_id AND top1_agreement.environment = effect_row.environment AND top1_agreement.host = effect_row.host AND top1_agreement.metric = 'top1_agreement' LEFT OUTER JOIN effect_row AS kl ON kl.comparison_id = effect_row.comparison_id AND kl.environment = effect_row.environment AND kl.host = effect_row.host AND kl.metric = 'kl' LEFT OUTER JOIN effect_row AS windows_skipped ON windows_skipped.comparison_id = effect_row.comparison_id AND windows_skipped.environment = effect_row.environment AND windows_skipped.host = effect_row.host AND windows_skipped.metric = 'windows_skipped' LEFT OUTER JOIN effect_row AS bytes_scored ON bytes_scored.comparison_id = effect_row.comparison_id AND bytes_scored.environment = effect_row.environment AND bytes_scored.host = effect_row.host AND bytes_scored.metric = 'bytes_scored' LEFT OUTER JOIN effect_row AS characters_scored ON characters_scored.comparison_id = effect_row.comparison_id AND characters_scored.environment = effect_row.environment AND characters_scored.host = effect_row.host AND characters_scored.metric = 'characters_scored' LEFT OUTER JOIN effect_row AS tokens_scored ON tokens_scored.comparison_id = effect_row.comparison_id AND tokens_scored.environment = effect_row.environment AND tokens_scored.host = effect_row.host AND tokens_scored.metric = 'tokens_scored' 
WHERE effect_row.metric = 'bits_per_byte' AND effect_row.effect IS NOT NULL AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW break_even AS SELECT sweep.name AS sweep, break_even_row.environment, break_even_row.host, environment.device, environment.device_name, comparison.kind, break_even_row.metric, break_even_row.threads, break_even_row.axis, break_even_row.varied_parameter, break_even_row.verdict, break_even_row.x, break_even_row.x_low, break_even_row.x_high, break_even_row.direction, break_even_row.grid_limited, break_even_row.points, break_even_row.points_missing, break_even_row.why, break_even_row.floor, break_even_row.curve_id, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.baseline, comparison.baseline_id 
FROM break_even_row JOIN sweep ON sweep.id = break_even_row.sweep JOIN comparison ON comparison.comparison_id = break_even_row.comparison_id JOIN environment ON environment.environment_id = break_even_row.environment 
WHERE NOT (EXISTS (SELECT newer.id 
FROM sweep AS newer 
WHERE sweep.name = newer.name AND sweep.revision < newer.revision));
CREATE VIEW failures AS SELECT DISTINCT effect_row.comparison_id, effect_row.question_id, effect_row.environment, environment.device, environment.device_name, comparison.kind, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.threads, comparison.baseline, comparison.baseline_id, failure.reason, failure.message, failure.attempt, effect_row.measured_at AS at, attempt.host 
FROM effect_row JOIN failure ON failure.id = effect_row.failure JOIN attempt ON attempt.id = failure.attempt JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment 
WHERE NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW metric AS SELECT metric_row.attempt, metric_row.arm, metric_row.metric, metric_row.value, metric_row.unit, metric_row.low, metric_row.high, metric_row.n, arm_result.arm_id, attempt.environment, attempt.flags, attempt.host, arm_result.route 
FROM metric_row JOIN attempt ON attempt.id = metric_row.attempt LEFT OUTER JOIN arm_result ON arm_result.attempt = metric_row.attempt AND arm_result.arm = metric_row.arm;
CREATE VIEW sweep_comparison AS SELECT sweep.name AS sweep, sweep_comparison_row.comparison_id 
FROM sweep_comparison_row JOIN sweep ON sweep.id = sweep_comparison_row.sweep 
WHERE NOT (EXISTS (SELECT newer.id 
FROM sweep AS newer 
WHERE sweep.name = newer.name AND sweep.revision < newer.revision));
CREATE VIEW arm AS SELECT arm_result.attempt, arm_result.arm, arm_result.arm_id, arm_result.kind, arm_result.condition_id, arm_result.arm_condition_id, attempt.environment, attempt.host, environment.device, environment.device_name, arm_result.model, arm_result.weights, arm_result.image_size, arm_result.batch_size, arm_result.dtype, arm_result.attention, arm_result.runtime, arm_result.seed, arm_result.method, arm_result.params, arm_result.data, arm_result.corruption, arm_result.severity, arm_result.prompt_tokens, arm_result.new_tokens, arm_result.kv_cache, arm_result.decoding, arm_result."exclusive", arm_result.threads, arm_result.batch, arm_result.parameters, arm_result.tokens, arm_result.tokens_final, arm_result.gmacs, arm_result.gmacs_overhead, arm_result.gmacs + coalesce(arm_result.gmacs_overhead, 0.0) AS gmacs_total, metrics.latency_ms, metrics.ttft_ms, metrics.tpot_ms, metrics.time_per_char_ms, metrics.top1, metrics.bits_per_byte, metrics.top5, metrics.kl, metrics.margin_change, metrics.margin_change_p05, metrics.mcnemar_p, metrics.only_baseline_correct, metrics.only_arm_correct, metrics.unreadable, metrics.perplexity, metrics.top1_agreement, metrics.agreement, metrics.windows_skipped, metrics.bytes_scored, metrics.characters_scored, metrics.tokens_scored, metrics.device_latency_ms, metrics.throughput, metrics.energy_per_image, metrics.relative_cost, metrics.diversity, metrics.cka, metrics.angle, metrics.tpot_p95_ms, metrics.prefill_tokens_per_s, metrics.decode_tokens_per_s, metrics.chars_per_s, metrics.base_tokens_per_s, metrics.tokenizer_s, metrics.load_s, metrics.achieved_gb_per_s, metrics.peak_gb_per_s, metrics.kv_bytes_needed, metrics.kv_bytes_resident, metrics.kv_bytes_virtual, metrics.rss_isolated_bytes, metrics.peak_rss_isolated_bytes, metrics.cuda_peak_allocated_isolated_bytes, metrics.cuda_peak_reserved_isolated_bytes, metrics.rss_before_bytes, metrics.peak_rss_bytes, metrics.cuda_allocated_before_bytes, metrics.cuda_peak_allocated_bytes, metrics.cuda_peak_reserved_bytes, metrics.mean_power, metrics.outlier_share, metrics.energy_per_token, metrics.energy_per_char, metrics.gmacs_ttft, metrics.gmacs_tpot, metrics.gmacs_overhead_ttft, metrics.gmacs_overhead_tpot, metrics.characters, metrics.tokens_decoded, metrics.achieved_sparsity, metrics.kernel_calls, metrics.fallback_calls, arm_result.flags AS arm_flags, attempt.flags AS job_flags, attempt.source, attempt.ended_at, arm_result.route 
FROM arm_result JOIN attempt ON attempt.id = arm_result.attempt JOIN environment ON environment.environment_id = attempt.environment LEFT OUTER JOIN (SELECT metric_row.attempt AS attempt, metric_row.arm AS arm, max(CASE WHEN (metric_row.metric = 'latency') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS latency_ms, max(CASE WHEN (metric_row.metric = 'ttft') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS ttft_ms, max(CASE WHEN (metric_row.metric = 'tpot') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS tpot_ms, max(CASE WHEN (metric_row.metric = 'time_per_char') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS time_per_char_ms, max(CASE WHEN (metric_row.metric = 'top1') THEN metric_row.value END) AS top1, max(CASE WHEN (metric_row.metric = 'bits_per_byte') THEN metric_row.value END) AS bits_per_byte, max(CASE WHEN (metric_row.metric = 'top5') THEN metric_row.value END) AS top5, max(CASE WHEN (metric_row.metric = 'kl') THEN metric_row.value END) AS kl, max(CASE WHEN (metric_row.metric = 'margin_change') THEN metric_row.value END) AS margin_change, max(CASE WHEN (metric_row.metric = 'margin_change_p05') THEN metric_row.value END) AS margin_change_p05, max(CASE WHEN (metric_row.metric = 'mcnemar_p') THEN metric_row.value END) AS mcnemar_p, max(CASE WHEN (metric_row.metric = 'only_baseline_correct') THEN metric_row.value END) AS only_baseline_correct, max(CASE WHEN (metric_row.metric = 'only_arm_correct') THEN metric_row.value END) AS only_arm_correct, max(CASE WHEN (metric_row.metric = 'unreadable') THEN metric_row.value END) AS unreadable, max(CASE WHEN (metric_row.metric = 'perplexity') THEN metric_row.value END) AS perplexity, max(CASE WHEN (metric_row.metric = 'top1_agreement') THEN metric_row.value END) AS top1_agreement, max(CASE WHEN (metric_row.metric = 'agreement') THEN metric_row.value END) AS agreement, max(CASE WHEN (metric_row.metric = 'windows_skipped') THEN metric_row.value END) AS windows_skipped, max(CASE WHEN (metric_row.metric = 'bytes_scored') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS bytes_scored, max(CASE WHEN (metric_row.metric = 'characters_scored') THEN metric_row.value END) AS characters_scored, max(CASE WHEN (metric_row.metric = 'tokens_scored') THEN metric_row.value END) AS tokens_scored, max(CASE WHEN (metric_row.metric = 'device_latency') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS device_latency_ms, max(CASE WHEN (metric_row.metric = 'throughput') THEN metric_row.value END) AS throughput, max(CASE WHEN (metric_row.metric = 'energy_per_image') THEN metric_row.value END) AS energy_per_image, max(CASE WHEN (metric_row.metric = 'relative_cost') THEN metric_row.value END) AS relative_cost, max(CASE WHEN (metric_row.metric = 'diversity') THEN metric_row.value END) AS diversity, max(CASE WHEN (metric_row.metric = 'cka') THEN metric_row.value END) AS cka, max(CASE WHEN (metric_row.metric = 'angle') THEN metric_row.value END) AS angle, max(CASE WHEN (metric_row.metric = 'tpot_p95') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS tpot_p95_ms, max(CASE WHEN (metric_row.metric = 'prefill_tokens_per_s') THEN metric_row.value END) AS prefill_tokens_per_s, max(CASE WHEN (metric_row.metric = 'decode_tokens_per_s') THEN metric_row.value END) AS decode_tokens_per_s, max(CASE WHEN (metric_row.metric = 'chars_per_s') THEN metric_row.value END) AS chars_per_s, max(CASE WHEN (metric_row.metric = 'base_tokens_per_s') THEN metric_row.value END) AS base_tokens_per_s, max(CASE WHEN (metric_row.metric = 'tokenizer_s') THEN metric_row.value END) AS tokenizer_s, max(CASE WHEN (metric_row.metric = 'load_s') THEN metric_row.value END) AS load_s, max(CASE WHEN (metric_row.metric = 'achieved_gb_per_s') THEN metric_row.value END) AS achieved_gb_per_s, max(CASE WHEN (metric_row.metric = 'peak_gb_per_s') THEN metric_row.value END) AS peak_gb_per_s, max(CASE WHEN (metric_row.metric = 'kv_bytes_needed') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_needed, max(CASE WHEN (metric_row.metric = 'kv_bytes_resident') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_resident, max(CASE WHEN (metric_row.metric = 'kv_bytes_virtual') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_virtual, max(CASE WHEN (metric_row.metric = 'rss_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS rss_isolated_bytes, max(CASE WHEN (metric_row.metric = 'peak_rss_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS peak_rss_isolated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_allocated_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_allocated_isolated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_reserved_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_reserved_isolated_bytes, max(CASE WHEN (metric_row.metric = 'rss_before') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS rss_before_bytes, max(CASE WHEN (metric_row.metric = 'peak_rss') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS peak_rss_bytes, max(CASE WHEN (metric_row.metric = 'cuda_allocated_before') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_allocated_before_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_allocated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_allocated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_reserved') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_reserved_bytes, max(CASE WHEN (metric_row.metric = 'mean_power') THEN metric_row.value END) AS mean_power, max(CASE WHEN (metric_row.metric = 'outlier_share') THEN metric_row.value END) AS outlier_share, max(CASE WHEN (metric_row.metric = 'energy_per_token') THEN metric_row.value END) AS energy_per_token, max(CASE WHEN (metric_row.metric = 'energy_per_char') THEN metric_row.value END) AS energy_per_char, max(CASE WHEN (metric_row.metric = 'gmacs_ttft') THEN metric_row.value END) AS gmacs_ttft, max(CASE WHEN (metric_row.metric = 'gmacs_tpot') THEN metric_row.value END) AS gmacs_tpot, max(CASE WHEN (metric_row.metric = 'gmacs_overhead_ttft') THEN metric_row.value END) AS gmacs_overhead_ttft, max(CASE WHEN (metric_row.metric = 'gmacs_overhead_tpot') THEN metric_row.value END) AS gmacs_overhead_tpot, max(CASE WHEN (metric_row.metric = 'characters') THEN metric_row.value END) AS characters, max(CASE WHEN (metric_row.metric = 'tokens_decoded') THEN metric_row.value END) AS tokens_decoded, max(CASE WHEN (metric_row.metric = 'achieved_sparsity') THEN metric_row.value END) AS achieved_sparsity, max(CASE WHEN (metric_row.metric = 'kernel_calls') THEN metric_row.value END) AS kernel_calls, max(CASE WHEN (metric_row.metric = 'fallback_calls') THEN metric_row.value END) AS fallback_calls 
FROM metric_row GROUP BY metric_row.attempt, metric_row.arm) AS metrics ON metrics.attempt = arm_result.attempt AND metrics.arm = arm_result.arm 
WHERE NOT (EXISTS (SELECT other.attempt 
FROM arm_result AS other JOIN attempt AS other_attempt ON other_attempt.id = other.attempt 
WHERE other.arm_condition_id = arm_result.arm_condition_id AND other_attempt.environment = attempt.environment AND other_attempt.host = attempt.host AND (CASE WHEN (other.flags = '' AND other_attempt.flags = '') THEN 0 ELSE 1 END < CASE WHEN (arm_result.flags = '' AND attempt.flags = '') THEN 0 ELSE 1 END OR CASE WHEN (other.flags = '' AND other_attempt.flags = '') THEN 0 ELSE 1 END = CASE WHEN (arm_result.flags = '' AND attempt.flags = '') THEN 0 ELSE 1 END AND other_attempt.id > attempt.id)));
CREATE VIEW generation AS SELECT arm.attempt, arm.arm, arm.arm_id, arm.kind, arm.condition_id, arm.arm_condition_id, arm.environment, arm.host, arm.device, arm.device_name, arm.model, arm.weights, arm.batch_size, arm.dtype, arm.attention, arm.runtime, arm.seed, arm.method, arm.params, arm.data, arm.prompt_tokens, arm.new_tokens, arm.kv_cache, arm.decoding, arm."exclusive", arm.threads, arm.parameters, arm.tokens, arm.tokens_final, arm.gmacs, arm.gmacs_overhead, arm.gmacs_total, arm.ttft_ms, arm.tpot_ms, arm.time_per_char_ms, arm.tpot_p95_ms, arm.prefill_tokens_per_s, arm.decode_tokens_per_s, arm.chars_per_s, arm.base_tokens_per_s, arm.tokenizer_s, arm.load_s, arm.achieved_gb_per_s, arm.peak_gb_per_s, arm.kv_bytes_needed, arm.kv_bytes_resident, arm.kv_bytes_virtual, arm.rss_isolated_bytes, arm.peak_rss_isolated_bytes, arm.cuda_peak_allocated_isolated_bytes, arm.cuda_peak_reserved_isolated_bytes, arm.rss_before_bytes, arm.peak_rss_bytes, arm.cuda_allocated_before_bytes, arm.cuda_peak_allocated_bytes, arm.cuda_peak_reserved_bytes, arm.mean_power, arm.outlier_share, arm.energy_per_token, arm.energy_per_char, arm.gmacs_ttft, arm.gmacs_tpot, arm.gmacs_overhead_ttft, arm.gmacs_overhead_tpot, arm.characters, arm.tokens_decoded, arm.achieved_sparsity, arm.kernel_calls, arm.fallback_calls, arm.arm_flags, arm.job_flags, arm.source, arm.ended_at, arm.route 
FROM arm 
WHERE arm.kind IN ('generation');
CREATE VIEW view_fingerprint AS SELECT '6061f4d4c6f519756b92a82e5d04ccb81e2cb085a972aaf742ee6692ef4e50a0' AS fingerprint;
COMMIT;
