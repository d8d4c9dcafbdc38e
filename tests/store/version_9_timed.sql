BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0009');
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
	spare_cores INTEGER, 
	wait_policy VARCHAR, 
	pinning VARCHAR, 
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
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,NULL,NULL,NULL,1,0,'6b34df06167eee16',0.16,0.0,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,NULL,NULL,NULL,1,1,'20ea9eebc60888a7',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'efb30afbeeaa3183','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.7,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,NULL,NULL,NULL,1,2,'9caf61cfb06af7e5',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'a33c697337623b60','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.9,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,NULL,NULL,NULL,1,3,'1447672ff15d8fae',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,NULL,NULL,NULL,2,0,'1c8622a06a5eaf5d',0.64,0.0,5717416,5717416,1,64,65,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,NULL,NULL,NULL,2,1,'97f22f6b7840f3ff',4.26666666666666694052e-01,0.001,5717416,5717416,1,64,65,2,'');
INSERT INTO "arm_result" VALUES(NULL,'efb30afbeeaa3183','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.7,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,NULL,NULL,NULL,2,2,'898fc13ee828d079',4.26666666666666694052e-01,0.001,5717416,5717416,1,64,65,2,'');
INSERT INTO "arm_result" VALUES(NULL,'a33c697337623b60','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.9,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,NULL,NULL,NULL,2,3,'b95c7dbcaecfc208',4.26666666666666694052e-01,0.001,5717416,5717416,1,64,65,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','accuracy','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'dense','{}','digits',NULL,NULL,NULL,NULL,NULL,NULL,'d2586a727e77b951',NULL,NULL,NULL,NULL,4,0,'3adfe1b80bd347e1',0.16,0.0,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'212af6ab5482de97','accuracy','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','digits',NULL,NULL,NULL,NULL,NULL,NULL,'d2586a727e77b951',NULL,NULL,NULL,NULL,4,1,'dbe5d10028f35abc',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','generation','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'dense','{}','docs',NULL,NULL,64,32,'dynamic','teacher_forcing','6864f6ad9d835772',NULL,NULL,NULL,NULL,5,0,'f83890f6e6723144',19.867631616,0.0,222000000,222000000,1,64,95,2,'');
INSERT INTO "arm_result" VALUES(NULL,'5da3d264e3067c02','generation','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'larosa','{"form":"absorbed","sparsity":0.5}','docs',NULL,NULL,64,32,'dynamic','teacher_forcing','6864f6ad9d835772',NULL,NULL,NULL,NULL,5,1,'02c443b59ea16ac5',18.19967488,0.01,322000000,322000000,1,64,95,2,'');
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','quality','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'dense','{}','docs',NULL,NULL,NULL,NULL,NULL,NULL,'7cd9c8dcae6693d6',NULL,NULL,NULL,NULL,6,0,'11a221fe2cceef95',6.647709696,0.0,222000000,222000000,1,0,31,2,'');
INSERT INTO "arm_result" VALUES(NULL,'5da3d264e3067c02','quality','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'larosa','{"form":"absorbed","sparsity":0.5}','docs',NULL,NULL,NULL,NULL,NULL,NULL,'7cd9c8dcae6693d6',NULL,NULL,NULL,NULL,6,1,'f057a02f28470573',4.987879424,0.01,322000000,322000000,1,0,31,2,'');
CREATE TABLE attempt (
	id INTEGER NOT NULL, 
	digest VARCHAR NOT NULL, 
	job INTEGER, 
	job_id VARCHAR NOT NULL, 
	n INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	process VARCHAR, 
	calibration_id VARCHAR, 
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
	CONSTRAINT fk_attempt_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_attempt_calibration_id FOREIGN KEY(calibration_id) REFERENCES calibration (calibration_id)
);
INSERT INTO "attempt" VALUES(1,'27f36c68c7ea5b41537d112760f19f2e69acfa91ae68a667e96f8bedc9a84b2b',NULL,'c5c43f03526404a1',1,0,'3726d88f8db4b006','here',NULL,NULL,1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.015,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.9,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2],[0,3]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.015,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":0.16,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.10666666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":2,"gmacs":0.10666666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":514.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":3,"gmacs":0.10666666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":515.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(2,'b2d9c4c1326cde316289e62ab95523f17b5aa0a052f5be82e36cc9e0407930e5',NULL,'70b53ff824535a64',1,0,'3726d88f8db4b006','here',NULL,NULL,1789999991.0,1790000001.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.015,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":128,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.9,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2],[0,3]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.015,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999991.0,"ended_at":1790000001.0,"arms":[{"arm":0,"gmacs":0.64,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.4266666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":2,"gmacs":0.4266666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":514.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":3,"gmacs":0.4266666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":515.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(3,'05ad18e16d9d21b833711f2e22dd7c204edadc2b7ca5d5faa667ff06f6982cbc',NULL,'a67efdc6e5e6b605',1,0,'3726d88f8db4b006','here',NULL,NULL,1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.015,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":224,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.015,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[],"failures":[{"arm":null,"reason":"out_of_memory","message":"7 GB","detail":""}],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(4,'67c0e765b356708958d8bea10107379e7af2a03780368b367bd4e757438f10f6',NULL,'179cd49b9a43ee89',1,0,'3726d88f8db4b006','here',NULL,NULL,1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.015,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"accuracy","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"digits"},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.015,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":0.16,"gmacs_overhead":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.10666666666666667,"gmacs_overhead":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"rss_before","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(5,'710e15c89268e477794b9fb6a3bd50803236de3efb3bebcca2a96f3cfa3632b1',NULL,'4681712a12869067',1,0,'3726d88f8db4b006','here',NULL,NULL,1789999990.0,1790000000.0,NULL,'imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.015,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{}','{"schema_version":1,"job":{"kind":"generation","condition":{"model":"llama-220m","weights":"random","image_size":null,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"docs","prompt_tokens":64,"new_tokens":32,"kv_cache":"dynamic","decoding":"teacher_forcing"},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.015,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":19.867631616,"gmacs_overhead":0.0,"parameters":222000000,"trainable_parameters":222000000,"batch":1,"tokens":64,"tokens_final":95,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"ttft","value":200.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"tpot","value":30.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"tpot_p95","value":33.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"characters","value":96.0,"unit":"1","low":null,"high":null,"n":1},{"name":"chars_per_s","value":84.95575221238938,"unit":"1/s","low":null,"high":null,"n":1},{"name":"kv_bytes_needed","value":6225920.0,"unit":"B","low":null,"high":null,"n":1},{"name":"kv_bytes_resident","value":6230016.0,"unit":"B","low":null,"high":null,"n":1},{"name":"peak_rss_isolated","value":1024.0,"unit":"MiB","low":null,"high":null,"n":1},{"name":"decode_tokens_per_s","value":33.333333333333336,"unit":"1/s","low":null,"high":null,"n":1},{"name":"peak_gb_per_s","value":30.0,"unit":"GB/s","low":null,"high":null,"n":1},{"name":"gmacs_ttft","value":13.195804672,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_overhead_ttft","value":0.0,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_tpot","value":0.21522022400000004,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_overhead_tpot","value":0.0,"unit":"GMAC","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":18.19967488,"gmacs_overhead":0.01,"parameters":322000000,"trainable_parameters":322000000,"batch":1,"tokens":64,"tokens_final":95,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"ttft","value":200.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"tpot","value":20.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"tpot_p95","value":22.0,"unit":"ms","low":null,"high":null,"n":1},{"name":"characters","value":96.0,"unit":"1","low":null,"high":null,"n":1},{"name":"chars_per_s","value":117.07317073170731,"unit":"1/s","low":null,"high":null,"n":1},{"name":"kv_bytes_needed","value":6225920.0,"unit":"B","low":null,"high":null,"n":1},{"name":"kv_bytes_resident","value":6230016.0,"unit":"B","low":null,"high":null,"n":1},{"name":"peak_rss_isolated","value":1024.0,"unit":"MiB","low":null,"high":null,"n":1},{"name":"decode_tokens_per_s","value":50.0,"unit":"1/s","low":null,"high":null,"n":1},{"name":"peak_gb_per_s","value":30.0,"unit":"GB/s","low":null,"high":null,"n":1},{"name":"achieved_sparsity","value":0.5,"unit":"1","low":null,"high":null,"n":1},{"name":"kernel_calls","value":28.0,"unit":"1","low":null,"high":null,"n":1},{"name":"fallback_calls","value":0.0,"unit":"1","low":null,"high":null,"n":1},{"name":"gmacs_ttft","value":13.195804672,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_overhead_ttft","value":0.01,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_tpot","value":0.16141516800000003,"unit":"GMAC","low":null,"high":null,"n":null},{"name":"gmacs_overhead_tpot","value":0.0,"unit":"GMAC","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"system_metrics":{},"flags":[],"commit":null}');
INSERT INTO "attempt" VALUES(6,'d58ab5d9288e9225ffed04b5d3d87661b785af9dd565bfdb993bcc5054873ee9',NULL,'3b750c86f93e0773',1,0,'3726d88f8db4b006','here',NULL,NULL,1789999990.0,1790000000.0,NULL,'imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.015,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{}','{"schema_version":1,"job":{"kind":"quality","condition":{"model":"llama-220m","weights":"random","image_size":null,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"docs"},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.015,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":6.647709696,"gmacs_overhead":0.0,"parameters":222000000,"trainable_parameters":222000000,"batch":1,"tokens":0,"tokens_final":31,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[],"flags":[]},{"arm":1,"gmacs":4.987879424,"gmacs_overhead":0.01,"parameters":322000000,"trainable_parameters":322000000,"batch":1,"tokens":0,"tokens_final":31,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[],"flags":[]}],"failures":[],"system_metrics":{},"flags":[],"commit":null}');
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
	fitted BOOLEAN, 
	worst_loss FLOAT, 
	largest_gain FLOAT, 
	pairs_factor FLOAT, 
	more_seconds FLOAT, 
	point_alpha FLOAT, 
	CONSTRAINT pk_break_even_row PRIMARY KEY (sweep, curve_id, environment, axis, crossing, metric, host), 
	CONSTRAINT ck_break_even_row_axis CHECK (axis IN ('tokens', 'gmacs', 'gmacs_saved', 'image_size', 'batch_size', 'threads', 'parameter')), 
	CONSTRAINT ck_break_even_row_verdict CHECK (verdict IN ('crossing', 'pays_from', 'pays_up_to', 'pays_at_both_ends', 'always', 'never', 'no_effect', 'unclear')), 
	CONSTRAINT ck_break_even_row_direction CHECK (direction IN ('gains', 'loses')), 
	CONSTRAINT ck_break_even_row_x CHECK (x + 0 = x AND x < 1e308 AND x > -1e308), 
	CONSTRAINT ck_break_even_row_x_low CHECK (x_low + 0 = x_low AND x_low < 1e308 AND x_low > -1e308), 
	CONSTRAINT ck_break_even_row_x_high CHECK (x_high + 0 = x_high AND x_high < 1e308 AND x_high > -1e308), 
	CONSTRAINT ck_break_even_row_worst_loss CHECK (worst_loss + 0 = worst_loss AND worst_loss < 1e308 AND worst_loss > -1e308), 
	CONSTRAINT ck_break_even_row_largest_gain CHECK (largest_gain + 0 = largest_gain AND largest_gain < 1e308 AND largest_gain > -1e308), 
	CONSTRAINT ck_break_even_row_pairs_factor CHECK (pairs_factor + 0 = pairs_factor AND pairs_factor < 1e308 AND pairs_factor > -1e308), 
	CONSTRAINT ck_break_even_row_more_seconds CHECK (more_seconds + 0 = more_seconds AND more_seconds < 1e308 AND more_seconds > -1e308), 
	CONSTRAINT ck_break_even_row_points CHECK (points + 0 = points AND points < 1e308 AND points > -1e308 AND points >= 0), 
	CONSTRAINT ck_break_even_row_points_missing CHECK (points_missing + 0 = points_missing AND points_missing < 1e308 AND points_missing > -1e308 AND points_missing >= 0), 
	CONSTRAINT fk_break_even_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_break_even_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_break_even_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id)
);
INSERT INTO "break_even_row" VALUES(1,'d0359b92c8c92164','3726d88f8db4b006','parameter',0,'b9e8bb028c503621',2,'pays_up_to',NULL,0.7,NULL,'loses',0,3,'Along keep_rate: faster at 0.5 to 0.7, not clear at 0.9.',0.02,5,'latency','keep_rate','here',0,0,4.35444805128604173205e-02,5.63735833722425194736e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'d1b2bf1402fece0c','3726d88f8db4b006','tokens',0,'425d53a308403a17',2,'never',NULL,NULL,NULL,NULL,NULL,2,'Along tokens: not clear at 16 to 64.',0.02,5,'latency',NULL,'here',0,NULL,NULL,4.32464624707007416759e-02,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'d1b2bf1402fece0c','3726d88f8db4b006','gmacs',0,'425d53a308403a17',2,'never',NULL,NULL,NULL,NULL,NULL,2,'Along GMACs: not clear at 0.16 to 0.64.',0.02,5,'latency',NULL,'here',0,NULL,NULL,4.32464624707007416759e-02,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'d1b2bf1402fece0c','3726d88f8db4b006','image_size',0,'425d53a308403a17',2,'never',NULL,NULL,NULL,NULL,NULL,2,'Along image size: not clear at 64 to 128.',0.02,5,'latency',NULL,'here',0,NULL,NULL,4.32464624707007416759e-02,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'d327af798a29b4fc','3726d88f8db4b006','tokens',0,'bd543784f5dc2745',2,'always',NULL,NULL,NULL,NULL,NULL,2,'Along tokens: faster at 16 to 64.',0.02,5,'latency',NULL,'here',0,NULL,NULL,2.51902091032933261871e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'d327af798a29b4fc','3726d88f8db4b006','gmacs',0,'bd543784f5dc2745',2,'always',NULL,NULL,NULL,NULL,NULL,2,'Along GMACs: faster at 0.16 to 0.64.',0.02,5,'latency',NULL,'here',0,NULL,NULL,2.51902091032933261871e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'d327af798a29b4fc','3726d88f8db4b006','image_size',0,'bd543784f5dc2745',2,'always',NULL,NULL,NULL,NULL,NULL,2,'Along image size: faster at 64 to 128.',0.02,5,'latency',NULL,'here',0,NULL,NULL,2.51902091032933261871e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'1e24ca72cbefaf9b','3726d88f8db4b006','parameter',0,'fd905e978e6bb74e',2,'pays_up_to',NULL,0.7,NULL,'loses',0,3,'Along keep_rate: faster at 0.5 to 0.7, not clear at 0.9.',0.02,5,'latency','keep_rate','here',0,0,4.28151941876320218938e-02,5.64568805125036599079e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','tokens',0,'fd905e978e6bb74e',2,'always',NULL,NULL,NULL,NULL,NULL,2,'Along tokens: faster at 16 to 64.',0.02,5,'latency',NULL,'here',0,NULL,NULL,5.64568805125036599079e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','gmacs',0,'fd905e978e6bb74e',2,'always',NULL,NULL,NULL,NULL,NULL,2,'Along GMACs: faster at 0.16 to 0.64.',0.02,5,'latency',NULL,'here',0,NULL,NULL,5.64568805125036599079e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','image_size',0,'fd905e978e6bb74e',2,'always',NULL,NULL,NULL,NULL,NULL,2,'Along image size: faster at 64 to 128.',0.02,5,'latency',NULL,'here',0,NULL,NULL,5.64568805125036599079e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','tokens',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'Along tokens: faster at 64.',0.02,5,'time_per_char',NULL,'here',0,NULL,NULL,4.34789396211022083349e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','gmacs',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'Along GMACs: faster at 19.87.',0.02,5,'time_per_char',NULL,'here',0,NULL,NULL,4.34789396211022083349e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','tokens',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'Along tokens: faster at 64.',0.02,5,'tpot',NULL,'here',0,NULL,NULL,5.62099708147590249041e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','gmacs',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'Along GMACs: faster at 0.2152.',0.02,5,'tpot',NULL,'here',0,NULL,NULL,5.62099708147590249041e-01,NULL,NULL,NULL);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','tokens',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'Along tokens: not clear at 64.',0.02,5,'ttft',NULL,'here',0,NULL,NULL,4.12865055303672789932e-02,5.58479234201749186183e+00,4.58479234201749221702e+01,NULL);
INSERT INTO "break_even_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','gmacs',0,'127a1c6f1490a096',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'Along GMACs: not clear at 13.2.',0.02,5,'ttft',NULL,'here',0,NULL,NULL,4.12865055303672789932e-02,5.58479234201749186183e+00,4.58479234201749221702e+01,NULL);
CREATE TABLE calibration (
	calibration_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	size_class VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	process_sd FLOAT NOT NULL, 
	tau FLOAT NOT NULL, 
	tau_low FLOAT NOT NULL, 
	tau_high FLOAT NOT NULL, 
	freedom FLOAT NOT NULL, 
	processes INTEGER NOT NULL, 
	contrasts INTEGER NOT NULL, 
	CONSTRAINT pk_calibration PRIMARY KEY (calibration_id), 
	CONSTRAINT ck_calibration_process_sd CHECK (process_sd + 0 = process_sd AND process_sd < 1e308 AND process_sd > -1e308 AND process_sd >= 0), 
	CONSTRAINT ck_calibration_tau CHECK (tau + 0 = tau AND tau < 1e308 AND tau > -1e308 AND tau >= 0), 
	CONSTRAINT ck_calibration_tau_low CHECK (tau_low + 0 = tau_low AND tau_low < 1e308 AND tau_low > -1e308 AND tau_low >= 0), 
	CONSTRAINT ck_calibration_tau_high CHECK (tau_high + 0 = tau_high AND tau_high < 1e308 AND tau_high > -1e308 AND tau_high >= 0), 
	CONSTRAINT ck_calibration_created_at CHECK (created_at + 0 = created_at AND created_at < 1e308 AND created_at > -1e308 AND created_at >= 0), 
	CONSTRAINT ck_calibration_freedom CHECK (freedom + 0 = freedom AND freedom < 1e308 AND freedom > -1e308 AND freedom > 0), 
	CONSTRAINT ck_calibration_processes CHECK (processes + 0 = processes AND processes < 1e308 AND processes > -1e308 AND processes > 0), 
	CONSTRAINT ck_calibration_contrasts CHECK (contrasts + 0 = contrasts AND contrasts < 1e308 AND contrasts > -1e308 AND contrasts > 0), 
	CONSTRAINT fk_calibration_environment FOREIGN KEY(environment) REFERENCES environment (environment_id)
);
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
	spare_cores INTEGER, 
	wait_policy VARCHAR, 
	pinning VARCHAR, 
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
INSERT INTO "comparison" VALUES('5da3d264e3067c02','generation','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'larosa','{"form":"absorbed","sparsity":0.5}','docs',NULL,NULL,64,32,'dynamic','teacher_forcing','6864f6ad9d835772',NULL,NULL,NULL,NULL,'127a1c6f1490a096','eba10f429923be07','efc69456288956c8',NULL,'dense','6cb99fb9c27e3323','f115d0eb9162277e','bfa3ec3697f41c5e','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"docs","decoding":"replay","device":"cpu","dtype":"float32","kv_cache":"dynamic","model":"llama-220m","new_tokens":32,"prompt_tokens":64,"runtime":"eager","seed":0,"weights":"random"},"kind":"generation"}','{}');
INSERT INTO "comparison" VALUES('5da3d264e3067c02','quality','cpu','llama-220m','random',NULL,1,'float32','sdpa','eager',0,'larosa','{"form":"absorbed","sparsity":0.5}','docs',NULL,NULL,NULL,NULL,NULL,NULL,'7cd9c8dcae6693d6',NULL,NULL,NULL,NULL,'14904e0129d8e228','ce15f05c1a899316','0a958746b0515aa6',NULL,'dense','6cb99fb9c27e3323','f115d0eb9162277e','bfa3ec3697f41c5e','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"larosa","params":{"form":"absorbed","sparsity":0.5},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"docs","device":"cpu","dtype":"float32","model":"llama-220m","runtime":"eager","seed":0,"weights":"random"},"kind":"quality"}','{}');
INSERT INTO "comparison" VALUES('212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',224,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'f7df8ceec5ef22eb',NULL,NULL,NULL,NULL,'340694a37c90f489','8d1c45e173ffc4ce','60dee36d4c9be9e1',NULL,'dense','6cb99fb9c27e3323','5e838e6c7d678da6','0ccc3df73b9e481d','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":224,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('a33c697337623b60','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.9,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,NULL,NULL,NULL,'425d53a308403a17','eb9ff566d53ef573','d1b2bf1402fece0c',NULL,'dense','6cb99fb9c27e3323','d6c43b458e7c8566','c4cfda920e54e0f6','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.9,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":128,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('212af6ab5482de97','accuracy','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','digits',NULL,NULL,NULL,NULL,NULL,NULL,'d2586a727e77b951',NULL,NULL,NULL,NULL,'46ea4f3f67a49e58','80ec0f274ffde719','9fc9332c31b5a34d',NULL,'dense','6cb99fb9c27e3323','228ca9235da3e598','77c8666a8a5254aa','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"digits","device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"accuracy"}','{}');
INSERT INTO "comparison" VALUES('a33c697337623b60','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.9,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,NULL,NULL,NULL,'541e34edbc55b5a8','b1d9a506bbc3ff86','d1b2bf1402fece0c',NULL,'dense','6cb99fb9c27e3323','9003a96c95340312','1f6ff833ce494d70','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.9,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('efb30afbeeaa3183','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.7,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,NULL,NULL,NULL,'5bae8cee2922af7f','9e4f6f298bc67be1','d327af798a29b4fc',NULL,'dense','6cb99fb9c27e3323','463d5858737f677a','65b1d7563fe4745b','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',64,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'635748751faaf321',NULL,NULL,NULL,NULL,'b9e8bb028c503621','ca7cccb30b9363f1','60dee36d4c9be9e1',NULL,'dense','6cb99fb9c27e3323','228ca9235da3e598','77c8666a8a5254aa','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('efb30afbeeaa3183','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.7,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,NULL,NULL,NULL,'bd543784f5dc2745','64e0023ad266c030','d327af798a29b4fc',NULL,'dense','6cb99fb9c27e3323','c80ccdd68fd1d38b','3517f24d647ce2e8','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":128,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',128,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'9bcdb4894f91a907',NULL,NULL,NULL,NULL,'fd905e978e6bb74e','2ebb4e69d576d0a2','60dee36d4c9be9e1',NULL,'dense','6cb99fb9c27e3323','92157f7b142a75b7','425729cf15b0dfaf','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":128,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
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
INSERT INTO "comparison_attempt" VALUES('5bae8cee2922af7f',1,0,2,NULL);
INSERT INTO "comparison_attempt" VALUES('541e34edbc55b5a8',1,0,3,NULL);
INSERT INTO "comparison_attempt" VALUES('fd905e978e6bb74e',2,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('bd543784f5dc2745',2,0,2,NULL);
INSERT INTO "comparison_attempt" VALUES('425d53a308403a17',2,0,3,NULL);
INSERT INTO "comparison_attempt" VALUES('340694a37c90f489',3,0,1,1);
INSERT INTO "comparison_attempt" VALUES('46ea4f3f67a49e58',4,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('127a1c6f1490a096',5,0,1,NULL);
INSERT INTO "comparison_attempt" VALUES('14904e0129d8e228',6,0,1,NULL);
CREATE TABLE cost_model_row (
	sweep INTEGER NOT NULL, 
	curve_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	metric VARCHAR NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	threads INTEGER, 
	points INTEGER NOT NULL, 
	work_unit VARCHAR NOT NULL, 
	verdict VARCHAR NOT NULL, 
	misfit_p FLOAT, 
	alpha_baseline FLOAT, 
	alpha_baseline_low FLOAT, 
	alpha_baseline_high FLOAT, 
	beta_baseline FLOAT, 
	beta_baseline_low FLOAT, 
	beta_baseline_high FLOAT, 
	alpha FLOAT, 
	alpha_low FLOAT, 
	alpha_high FLOAT, 
	beta FLOAT, 
	beta_low FLOAT, 
	beta_high FLOAT, 
	predicted_x FLOAT, 
	predicted_x_low FLOAT, 
	predicted_x_high FLOAT, 
	measured_x FLOAT, 
	measured_x_low FLOAT, 
	measured_x_high FLOAT, 
	analysis_version INTEGER NOT NULL, 
	CONSTRAINT pk_cost_model_row PRIMARY KEY (sweep, curve_id, environment, host, metric), 
	CONSTRAINT ck_cost_model_row_work_unit CHECK (work_unit IN ('GMAC', 'token')), 
	CONSTRAINT ck_cost_model_row_verdict CHECK (verdict IN ('fits', 'misfit', 'undetermined')), 
	CONSTRAINT ck_cost_model_row_alpha_baseline CHECK (alpha_baseline + 0 = alpha_baseline AND alpha_baseline < 1e308 AND alpha_baseline > -1e308 AND alpha_baseline >= 0), 
	CONSTRAINT ck_cost_model_row_alpha_baseline_low CHECK (alpha_baseline_low + 0 = alpha_baseline_low AND alpha_baseline_low < 1e308 AND alpha_baseline_low > -1e308 AND alpha_baseline_low >= 0), 
	CONSTRAINT ck_cost_model_row_alpha_baseline_high CHECK (alpha_baseline_high + 0 = alpha_baseline_high AND alpha_baseline_high < 1e308 AND alpha_baseline_high > -1e308 AND alpha_baseline_high >= 0), 
	CONSTRAINT ck_cost_model_row_beta_baseline CHECK (beta_baseline + 0 = beta_baseline AND beta_baseline < 1e308 AND beta_baseline > -1e308 AND beta_baseline >= 0), 
	CONSTRAINT ck_cost_model_row_beta_baseline_low CHECK (beta_baseline_low + 0 = beta_baseline_low AND beta_baseline_low < 1e308 AND beta_baseline_low > -1e308 AND beta_baseline_low >= 0), 
	CONSTRAINT ck_cost_model_row_beta_baseline_high CHECK (beta_baseline_high + 0 = beta_baseline_high AND beta_baseline_high < 1e308 AND beta_baseline_high > -1e308 AND beta_baseline_high >= 0), 
	CONSTRAINT ck_cost_model_row_alpha CHECK (alpha + 0 = alpha AND alpha < 1e308 AND alpha > -1e308 AND alpha >= 0), 
	CONSTRAINT ck_cost_model_row_alpha_low CHECK (alpha_low + 0 = alpha_low AND alpha_low < 1e308 AND alpha_low > -1e308 AND alpha_low >= 0), 
	CONSTRAINT ck_cost_model_row_alpha_high CHECK (alpha_high + 0 = alpha_high AND alpha_high < 1e308 AND alpha_high > -1e308 AND alpha_high >= 0), 
	CONSTRAINT ck_cost_model_row_beta CHECK (beta + 0 = beta AND beta < 1e308 AND beta > -1e308 AND beta >= 0), 
	CONSTRAINT ck_cost_model_row_beta_low CHECK (beta_low + 0 = beta_low AND beta_low < 1e308 AND beta_low > -1e308 AND beta_low >= 0), 
	CONSTRAINT ck_cost_model_row_beta_high CHECK (beta_high + 0 = beta_high AND beta_high < 1e308 AND beta_high > -1e308 AND beta_high >= 0), 
	CONSTRAINT ck_cost_model_row_predicted_x CHECK (predicted_x + 0 = predicted_x AND predicted_x < 1e308 AND predicted_x > -1e308), 
	CONSTRAINT ck_cost_model_row_predicted_x_low CHECK (predicted_x_low + 0 = predicted_x_low AND predicted_x_low < 1e308 AND predicted_x_low > -1e308), 
	CONSTRAINT ck_cost_model_row_predicted_x_high CHECK (predicted_x_high + 0 = predicted_x_high AND predicted_x_high < 1e308 AND predicted_x_high > -1e308), 
	CONSTRAINT ck_cost_model_row_measured_x CHECK (measured_x + 0 = measured_x AND measured_x < 1e308 AND measured_x > -1e308), 
	CONSTRAINT ck_cost_model_row_measured_x_low CHECK (measured_x_low + 0 = measured_x_low AND measured_x_low < 1e308 AND measured_x_low > -1e308), 
	CONSTRAINT ck_cost_model_row_measured_x_high CHECK (measured_x_high + 0 = measured_x_high AND measured_x_high < 1e308 AND measured_x_high > -1e308), 
	CONSTRAINT ck_cost_model_row_misfit_p CHECK (misfit_p + 0 = misfit_p AND misfit_p < 1e308 AND misfit_p > -1e308 AND misfit_p >= 0), 
	CONSTRAINT ck_cost_model_row_points CHECK (points + 0 = points AND points < 1e308 AND points > -1e308 AND points >= 0), 
	CONSTRAINT fk_cost_model_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_cost_model_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_cost_model_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id)
);
INSERT INTO "cost_model_row" VALUES(1,'d1b2bf1402fece0c','3726d88f8db4b006','here','latency','425d53a308403a17',2,2,'GMAC','undetermined',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,5);
INSERT INTO "cost_model_row" VALUES(1,'d327af798a29b4fc','3726d88f8db4b006','here','latency','bd543784f5dc2745',2,2,'GMAC','undetermined',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,5);
INSERT INTO "cost_model_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','here','latency','fd905e978e6bb74e',2,2,'GMAC','undetermined',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,5);
INSERT INTO "cost_model_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','here','time_per_char','127a1c6f1490a096',2,1,'GMAC','undetermined',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,5);
INSERT INTO "cost_model_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','here','tpot','127a1c6f1490a096',2,1,'GMAC','undetermined',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,5);
INSERT INTO "cost_model_row" VALUES(1,'efc69456288956c8','3726d88f8db4b006','here','ttft','127a1c6f1490a096',2,1,'GMAC','undetermined',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,5);
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
	effect_se FLOAT, 
	effect_freedom FLOAT, 
	process_sd FLOAT, 
	calibration_id VARCHAR, 
	process_loads VARCHAR, 
	n INTEGER, 
	rounds INTEGER, 
	seconds FLOAT, 
	verdict VARCHAR, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_effect_row PRIMARY KEY (comparison_id, environment, host, metric), 
	CONSTRAINT ck_effect_row_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_effect_row_compared CHECK (compared IN ('ratio', 'amount', 'difference')), 
	CONSTRAINT ck_effect_row_verdict CHECK (verdict IN ('faster', 'slower', 'insufficient', 'quarantined', 'better', 'worse', 'same', 'unclear')), 
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
	CONSTRAINT fk_effect_row_failure FOREIGN KEY(failure) REFERENCES failure (id), 
	CONSTRAINT fk_effect_row_calibration_id FOREIGN KEY(calibration_id) REFERENCES calibration (calibration_id)
);
INSERT INTO "effect_row" VALUES(NULL,'541e34edbc55b5a8','3726d88f8db4b006','here','latency','b1d9a506bbc3ff86','2026-09-21T14:13:20.000Z','imported',5,'ms','ratio',0.02,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.9991985009093014014e+00,1.00052700874060089835e+01,NULL,NULL,NULL,9.99505290849475369618e-01,9.58272520888175161069e-01,1.0425122338999774918e+00,1.50080659141390588412e-02,1000000.0,0.015,NULL,'{"attempt 1": 0.005}',40,1,10.0,'unclear','');
INSERT INTO "effect_row" VALUES(NULL,'5bae8cee2922af7f','3726d88f8db4b006','here','latency','9e4f6f298bc67be1','2026-09-21T14:13:20.000Z','imported',5,'ms','ratio',0.02,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.9991985009093014014e+00,8.33312127163679861041e+00,NULL,NULL,NULL,1.19999801398454852829e+00,1.15049695662239148674e+00,1.25162889417315170703e+00,1.50072377171179497518e-02,1000000.0,0.015,NULL,'{"attempt 1": 0.005}',40,1,10.0,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'b9e8bb028c503621','3726d88f8db4b006','here','latency','ca7cccb30b9363f1','2026-09-21T14:13:20.000Z','imported',5,'ms','ratio',0.02,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.9991985009093014014e+00,6.66864117591602933998e+00,NULL,NULL,NULL,1.4992470783604392448e+00,1.43741785121188425655e+00,1.56373583372242519473e+00,1.50032380242053585417e-02,1000000.0,0.015,NULL,'{"attempt 1": 0.005}',40,1,10.0,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'425d53a308403a17','3726d88f8db4b006','here','latency','eb9ff566d53ef573','2026-09-21T14:13:21.000Z','imported',5,'ms','ratio',0.02,NULL,2,64,65,0.64,4.26666666666666694052e-01,0.001,9.9991332289969072633e+00,9.99997384273842904178e+00,NULL,NULL,NULL,1.00020675940746439636e+00,9.58942682820242531249e-01,1.04324646247070074167e+00,1.50089459289615718279e-02,1000000.0,0.015,NULL,'{"attempt 2": 0.004999999999999999}',40,1,10.0,'unclear','');
INSERT INTO "effect_row" VALUES(NULL,'bd543784f5dc2745','3726d88f8db4b006','here','latency','64e0023ad266c030','2026-09-21T14:13:21.000Z','imported',5,'ms','ratio',0.02,NULL,2,64,65,0.64,4.26666666666666694052e-01,0.001,9.9991332289969072633e+00,8.33137020853988374824e+00,NULL,NULL,NULL,1.2002504034374137376e+00,1.1507297905086548706e+00,1.25190209103293326187e+00,1.50100686200622304017e-02,1000000.0,0.015,NULL,'{"attempt 2": 0.004999999999999999}',40,1,10.0,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'fd905e978e6bb74e','3726d88f8db4b006','here','latency','2ebb4e69d576d0a2','2026-09-21T14:13:21.000Z','imported',5,'ms','ratio',0.02,NULL,2,64,65,0.64,4.26666666666666694052e-01,0.001,9.9991332289969072633e+00,6.66752328892048851116e+00,NULL,NULL,NULL,1.50004921450256190063e+00,1.43819027872662119627e+00,1.56456880512503659907e+00,1.50024028566373736348e-02,1000000.0,0.015,NULL,'{"attempt 2": 0.004999999999999999}',40,1,10.0,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'340694a37c90f489','3726d88f8db4b006','here','latency','8d1c45e173ffc4ce','2026-09-21T14:13:20.000Z','imported',5,'ms','ratio',0.02,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','top1','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'%','difference',0.2,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,90.0,84.0,71.485783936965,91.6625793219666,NULL,-6.0,-1.62170916888381739791e+01,1.56284550813974920657e+00,NULL,NULL,NULL,NULL,NULL,50,1,10.0,'unclear','');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','top5','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'%',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,92.0,94.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,50,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','kl','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'nat',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,9.90505518484860597583e-02,6.43375138656854389518e-02,1.77688481745616133622e-01,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,50,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','margin_change','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'logit',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,-3.77389379143714898123e-01,-1.07043987025751330399e+00,8.26756585914514285917e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,50,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','margin_change_p05','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'logit',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,-2.38394283354282388032e+00,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,50,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','mcnemar_p','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'1',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,0.25,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,50,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','only_baseline_correct','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'images',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,3.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,50,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','only_arm_correct','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'images',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,50,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'46ea4f3f67a49e58','3726d88f8db4b006','','unreadable','80ec0f274ffde719','2026-09-21T14:13:20.000Z','imported',1,'images',NULL,NULL,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,50,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'127a1c6f1490a096','3726d88f8db4b006','here','time_per_char','eba10f429923be07','2026-09-21T14:13:20.000Z','imported',5,'ms','ratio',0.02,NULL,2,64,95,19.867631616,18.19967488,0.01,1.17285383697797911399e+01,8.52867052668093705847e+00,NULL,NULL,NULL,1.37467735833529780542e+00,1.31708377864383052724e+00,1.43478939621102208334e+00,1.52442138997281716877e-02,1.18788944290090767023e+04,0.015,NULL,'{"attempt 5": 0.004999999999999999}',40,1,10.0,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'127a1c6f1490a096','3726d88f8db4b006','here','tpot','eba10f429923be07','2026-09-21T14:13:20.000Z','imported',5,'ms','ratio',0.02,NULL,2,64,95,2.15220224000000043274e-01,1.61415168000000025516e-01,0.0,2.99684059747470286092e+01,2.00461105851923413476e+01,NULL,NULL,NULL,1.4968757563146415368e+00,1.43437516706253065379e+00,1.56209970814759024904e+00,1.51924695068666876229e-02,1.89310019190045895811e+04,0.015,NULL,'{"attempt 5": 0.005}',40,1,10.0,'faster','');
INSERT INTO "effect_row" VALUES(NULL,'127a1c6f1490a096','3726d88f8db4b006','here','ttft','eba10f429923be07','2026-09-21T14:13:20.000Z','imported',5,'ms','ratio',0.02,NULL,2,64,95,13.195804672,13.195804672,0.01,2.00101109159247016579e+02,2.00325392887539067022e+02,NULL,NULL,NULL,0.998116401652896,9.56736062512501095334e-01,1.04128650553036727899e+00,1.50840297440326225053e-02,9.72103857469471695391e+04,0.015,NULL,'{"attempt 5": 0.004999999999999999}',40,1,10.0,'unclear','');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','bits_per_byte','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'bit','difference',0.005,NULL,2,0,31,6.647709696,4.987879424,0.01,2.19448103768936686464e+00,2.24241586474142362561e+00,NULL,NULL,NULL,4.79348270520570177155e-02,4.17778638878392172273e-02,5.34556302344346770394e-02,NULL,NULL,NULL,NULL,NULL,40,1,10.0,'worse','');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','perplexity','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'1',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,4.1809899275396884377e+02,4.77020068178506789985e+02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,40,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','tokens_scored','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'1',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,4000.0,4000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,40,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','top1_agreement','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'%',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,89.9,8.89096988903829554828e+01,9.06920348275275358708e+01,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,40,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','kl','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'nat',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,2.6019717362942174077e-02,0.0192614147108319,3.89635224944792635248e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,40,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','windows_skipped','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'windows',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,40,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','bytes_scored','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'B',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,15872.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,40,1,10.0,NULL,'');
INSERT INTO "effect_row" VALUES(NULL,'14904e0129d8e228','3726d88f8db4b006','','characters_scored','ce15f05c1a899316','2026-09-21T14:13:20.000Z','imported',1,'1',NULL,NULL,NULL,2,0,31,6.647709696,4.987879424,0.01,NULL,15752.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,40,1,10.0,NULL,'');
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
INSERT INTO "failure" VALUES(1,3,NULL,'out_of_memory','7 GB','');
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
INSERT INTO "image_predictions" VALUES(4,'ab',X'789CCD94DB8EA3461086DFC5B78C647C1C18692E0ABA31B631EEC680C7B3CA05604E6E4EE66C56FBEECBE4B04A1425DA248AB47DD355EA2EE9FBAB7ED5E7499C3AA15F4D5E56FCD3C44B9CAAFA4866639238AE9F8CF1047E88F3FA3A1999E2AA8EB3708472DC316DB2D277AE8E9BF893974F3F3D4D9C321D813F7DFE08262FA386A2F4AFB157FBD73FC908BF45D23FC2B88014FEFDFB77C8289D8CFD5844A95386713632B58EC0E8A677AFBCB4E9F00A8600338A4425C670BD3C4C287B8FA36A3825160A923C02390A4EED6A67DC196C5455844E7122AA944189211FEE0634E6C22073C5287828177901F185D3A9748B625E3E90650F058AF77407AA63C9EEA97B87B8BBAEE83E2626960A3F6DA6BB4575EAF473193238E638013151020A350A78F9FAFC90402FB81D95F8B96F41A99A06D4D4D509D7DF19967DB92770960C9FEAB7D8C3F269AB15807549A03B5709193AF0633D683E4F25C9CB2CC9DEED77239F2351D4DB9905AF932F4FBF5A69F65FAC74F8FEC175BFBFFFAAEE0F83FB5756FA5F89BE5969D0D71A455CC0786949B377E0EF554437A8CAB114CDB216968ED151A92D3C86B6D49C81969FFB56E86A8F97DEE5D48078BDA754ABA7174BDE78F71ED481D3E8D667170B9DDD6C809EF1155554356728EBB21E0C4EA9E9F664D718CCF56906C9C570A88CA4F17F2A94A7E99BEADDBBC3513C6378368C0466B6F3468F6F5A6A8116CE15288DA06CF944D12C4487B302E9B00C5A2E7A8B305AAC564B2E2F563AD5360663C80E541DB4A839513DDD05BC642B760F9C1A6D2961DE922115A9F568B56791CC0CD1661F561AD753E1C4E52FFBC9752A3F8933FFE725F59BC3583236AD139FB724880271E8D3C6BA70919FEF49059E36CC1F67B214EA646F13EDBE7FDC8677F1960B321CEEA480DABFAD6A230D85CA2CD604D3541EFA39DB55C225144EC735B0F036A48199737B9B52726DB2E761D1AB6D2E04D6D122B11AFB68D168B412A53DBE113129F1C0CFA30508CBCB6C45822E37107F5322CA2DF039269BE97439CC2C9D13C4F63435880E670FF1AC2EB1501A964284F5E3613ED49C62912C9A03D9D908A3F9BDE173F1CD6D5D623E60613ECA73CCC4F6DA2BE4501CABDB80631C4EB79B8A92BC7934B7EEA3695FBE02B998F8D4',50,0,10);
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
CREATE TABLE kernel_row (
	profile_id VARCHAR NOT NULL, 
	place INTEGER NOT NULL, 
	attempt INTEGER, 
	name VARCHAR NOT NULL, 
	activity VARCHAR NOT NULL, 
	count FLOAT NOT NULL, 
	seconds FLOAT NOT NULL, 
	gmacs FLOAT, 
	bytes_moved FLOAT, 
	sm_throughput FLOAT, 
	memory_throughput FLOAT, 
	achieved_occupancy FLOAT, 
	l1_hit_rate FLOAT, 
	l2_hit_rate FLOAT, 
	CONSTRAINT pk_kernel_row PRIMARY KEY (profile_id, place), 
	CONSTRAINT ck_kernel_row_activity CHECK (activity IN ('kernel', 'memcpy', 'memset', 'operator')), 
	CONSTRAINT ck_kernel_row_place CHECK (place + 0 = place AND place < 1e308 AND place > -1e308 AND place >= 0), 
	CONSTRAINT ck_kernel_row_count CHECK (count + 0 = count AND count < 1e308 AND count > -1e308 AND count >= 0), 
	CONSTRAINT ck_kernel_row_seconds CHECK (seconds + 0 = seconds AND seconds < 1e308 AND seconds > -1e308 AND seconds >= 0), 
	CONSTRAINT ck_kernel_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_kernel_row_bytes_moved CHECK (bytes_moved + 0 = bytes_moved AND bytes_moved < 1e308 AND bytes_moved > -1e308 AND bytes_moved >= 0), 
	CONSTRAINT ck_kernel_row_sm_throughput CHECK (sm_throughput + 0 = sm_throughput AND sm_throughput < 1e308 AND sm_throughput > -1e308 AND sm_throughput >= 0), 
	CONSTRAINT ck_kernel_row_memory_throughput CHECK (memory_throughput + 0 = memory_throughput AND memory_throughput < 1e308 AND memory_throughput > -1e308 AND memory_throughput >= 0), 
	CONSTRAINT ck_kernel_row_achieved_occupancy CHECK (achieved_occupancy + 0 = achieved_occupancy AND achieved_occupancy < 1e308 AND achieved_occupancy > -1e308 AND achieved_occupancy >= 0), 
	CONSTRAINT ck_kernel_row_l1_hit_rate CHECK (l1_hit_rate + 0 = l1_hit_rate AND l1_hit_rate < 1e308 AND l1_hit_rate > -1e308 AND l1_hit_rate >= 0), 
	CONSTRAINT ck_kernel_row_l2_hit_rate CHECK (l2_hit_rate + 0 = l2_hit_rate AND l2_hit_rate < 1e308 AND l2_hit_rate > -1e308 AND l2_hit_rate >= 0), 
	CONSTRAINT fk_kernel_row_profile_id FOREIGN KEY(profile_id) REFERENCES profile_row (profile_id), 
	CONSTRAINT fk_kernel_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
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
INSERT INTO "metric_row" VALUES(1,0,'rss_before',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,1,'rss_before',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,2,'rss_before',514.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,3,'rss_before',515.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,0,'rss_before',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,1,'rss_before',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,2,'rss_before',514.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,3,'rss_before',515.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(4,0,'rss_before',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(4,1,'rss_before',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,0,'ttft',200.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'tpot',30.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'tpot_p95',33.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'characters',96.0,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'chars_per_s',8.49557522123893846775e+01,'1/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'kv_bytes_needed',6225920.0,'B',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'kv_bytes_resident',6230016.0,'B',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'peak_rss_isolated',1024.0,'MiB',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'decode_tokens_per_s',3.33333333333333357026e+01,'1/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'peak_gb_per_s',30.0,'GB/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,0,'gmacs_ttft',13.195804672,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,0,'gmacs_overhead_ttft',0.0,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,0,'gmacs_tpot',2.15220224000000043274e-01,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,0,'gmacs_overhead_tpot',0.0,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,1,'ttft',200.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'tpot',20.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'tpot_p95',22.0,'ms',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'characters',96.0,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'chars_per_s',1.17073170731707307365e+02,'1/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'kv_bytes_needed',6225920.0,'B',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'kv_bytes_resident',6230016.0,'B',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'peak_rss_isolated',1024.0,'MiB',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'decode_tokens_per_s',50.0,'1/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'peak_gb_per_s',30.0,'GB/s',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'achieved_sparsity',0.5,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'kernel_calls',28.0,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'fallback_calls',0.0,'1',NULL,NULL,1);
INSERT INTO "metric_row" VALUES(5,1,'gmacs_ttft',13.195804672,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,1,'gmacs_overhead_ttft',0.01,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,1,'gmacs_tpot',1.61415168000000025516e-01,'GMAC',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(5,1,'gmacs_overhead_tpot',0.0,'GMAC',NULL,NULL,NULL);
CREATE TABLE peak_row (
	id INTEGER NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	attempt INTEGER, 
	measured_at FLOAT NOT NULL, 
	dtype VARCHAR NOT NULL, 
	threads INTEGER, 
	gflops FLOAT NOT NULL, 
	gb_per_s FLOAT NOT NULL, 
	CONSTRAINT pk_peak_row PRIMARY KEY (id), 
	CONSTRAINT ck_peak_row_measured_at CHECK (measured_at + 0 = measured_at AND measured_at < 1e308 AND measured_at > -1e308 AND measured_at > 0), 
	CONSTRAINT ck_peak_row_gflops CHECK (gflops + 0 = gflops AND gflops < 1e308 AND gflops > -1e308 AND gflops > 0), 
	CONSTRAINT ck_peak_row_gb_per_s CHECK (gb_per_s + 0 = gb_per_s AND gb_per_s < 1e308 AND gb_per_s > -1e308 AND gb_per_s > 0), 
	CONSTRAINT ck_peak_row_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads > 0), 
	CONSTRAINT fk_peak_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_peak_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
CREATE TABLE profile_row (
	profile_id VARCHAR NOT NULL, 
	attempt INTEGER, 
	arm INTEGER NOT NULL, 
	source VARCHAR, 
	tool VARCHAR NOT NULL, 
	phase VARCHAR NOT NULL, 
	digest VARCHAR, 
	file VARCHAR, 
	comparison_id VARCHAR, 
	side VARCHAR, 
	label VARCHAR, 
	environment VARCHAR, 
	device_name VARCHAR, 
	recorded_at FLOAT NOT NULL, 
	forwards INTEGER NOT NULL, 
	wall_s FLOAT, 
	profiled_wall_s FLOAT, 
	launches FLOAT NOT NULL, 
	covered FLOAT, 
	allocations FLOAT, 
	allocated_bytes FLOAT, 
	CONSTRAINT pk_profile_row PRIMARY KEY (profile_id), 
	CONSTRAINT ck_profile_row_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_profile_row_tool CHECK (tool IN ('torch', 'nsys', 'ncu')), 
	CONSTRAINT ck_profile_row_phase CHECK (phase IN ('forward', 'prefill', 'decode')), 
	CONSTRAINT ck_profile_row_side CHECK (side IN ('baseline', 'arm')), 
	CONSTRAINT ck_profile_row_forwards CHECK (forwards + 0 = forwards AND forwards < 1e308 AND forwards > -1e308 AND forwards > 0), 
	CONSTRAINT ck_profile_row_recorded_at CHECK (recorded_at + 0 = recorded_at AND recorded_at < 1e308 AND recorded_at > -1e308 AND recorded_at > 0), 
	CONSTRAINT ck_profile_row_wall_s CHECK (wall_s + 0 = wall_s AND wall_s < 1e308 AND wall_s > -1e308 AND wall_s >= 0), 
	CONSTRAINT ck_profile_row_profiled_wall_s CHECK (profiled_wall_s + 0 = profiled_wall_s AND profiled_wall_s < 1e308 AND profiled_wall_s > -1e308 AND profiled_wall_s >= 0), 
	CONSTRAINT ck_profile_row_launches CHECK (launches + 0 = launches AND launches < 1e308 AND launches > -1e308 AND launches >= 0), 
	CONSTRAINT ck_profile_row_covered CHECK (covered + 0 = covered AND covered < 1e308 AND covered > -1e308 AND covered >= 0), 
	CONSTRAINT ck_profile_row_allocations CHECK (allocations + 0 = allocations AND allocations < 1e308 AND allocations > -1e308 AND allocations >= 0), 
	CONSTRAINT ck_profile_row_allocated_bytes CHECK (allocated_bytes + 0 = allocated_bytes AND allocated_bytes < 1e308 AND allocated_bytes > -1e308 AND allocated_bytes >= 0), 
	CONSTRAINT fk_profile_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id), 
	CONSTRAINT fk_profile_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id)
);
CREATE TABLE profile_time_row (
	profile_id VARCHAR NOT NULL, 
	time_class VARCHAR NOT NULL, 
	attempt INTEGER, 
	seconds FLOAT NOT NULL, 
	CONSTRAINT pk_profile_time_row PRIMARY KEY (profile_id, time_class), 
	CONSTRAINT ck_profile_time_row_time_class CHECK (time_class IN ('device', 'launch', 'host', 'sync', 'idle')), 
	CONSTRAINT ck_profile_time_row_seconds CHECK (seconds + 0 = seconds AND seconds < 1e308 AND seconds > -1e308 AND seconds >= 0), 
	CONSTRAINT fk_profile_time_row_profile_id FOREIGN KEY(profile_id) REFERENCES profile_row (profile_id), 
	CONSTRAINT fk_profile_time_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
CREATE TABLE reference_row (
	reference VARCHAR NOT NULL, 
	entry INTEGER NOT NULL, 
	environment VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	title VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	year INTEGER, 
	place VARCHAR NOT NULL, 
	url VARCHAR, 
	device_name VARCHAR, 
	software VARCHAR, 
	counter VARCHAR, 
	tuned BOOLEAN, 
	label VARCHAR NOT NULL, 
	is_baseline BOOLEAN NOT NULL, 
	method VARCHAR, 
	model VARCHAR, 
	setting VARCHAR, 
	image_size INTEGER, 
	tokens INTEGER, 
	tokens_final INTEGER, 
	batch_size INTEGER, 
	keep_rate FLOAT, 
	r FLOAT, 
	sparsity FLOAT, 
	latency_ms FLOAT, 
	latency_unit VARCHAR, 
	throughput FLOAT, 
	gmacs_baseline FLOAT, 
	gmacs FLOAT, 
	speedup FLOAT, 
	speedup_stated FLOAT, 
	kernel_ms FLOAT, 
	kernels INTEGER, 
	forwards INTEGER, 
	top1_baseline FLOAT, 
	top1 FLOAT, 
	images INTEGER, 
	perplexity FLOAT, 
	counters VARCHAR NOT NULL, 
	note VARCHAR, 
	digest VARCHAR NOT NULL, 
	payload VARCHAR NOT NULL, 
	set_payload VARCHAR NOT NULL, 
	CONSTRAINT pk_reference_row PRIMARY KEY (reference, entry), 
	CONSTRAINT ck_reference_row_source CHECK (source IN ('published')), 
	CONSTRAINT ck_reference_row_latency_unit CHECK (latency_unit IN ('per_batch', 'per_image')), 
	CONSTRAINT ck_reference_row_batch_size CHECK (batch_size + 0 = batch_size AND batch_size < 1e308 AND batch_size > -1e308 AND batch_size > 0), 
	CONSTRAINT ck_reference_row_latency_ms CHECK (latency_ms + 0 = latency_ms AND latency_ms < 1e308 AND latency_ms > -1e308 AND latency_ms > 0), 
	CONSTRAINT ck_reference_row_throughput CHECK (throughput + 0 = throughput AND throughput < 1e308 AND throughput > -1e308 AND throughput > 0), 
	CONSTRAINT ck_reference_row_gmacs_baseline CHECK (gmacs_baseline + 0 = gmacs_baseline AND gmacs_baseline < 1e308 AND gmacs_baseline > -1e308 AND gmacs_baseline > 0), 
	CONSTRAINT ck_reference_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs > 0), 
	CONSTRAINT ck_reference_row_kernel_ms CHECK (kernel_ms + 0 = kernel_ms AND kernel_ms < 1e308 AND kernel_ms > -1e308 AND kernel_ms > 0), 
	CONSTRAINT ck_reference_row_speedup CHECK (speedup + 0 = speedup AND speedup < 1e308 AND speedup > -1e308 AND speedup > 0), 
	CONSTRAINT ck_reference_row_speedup_stated CHECK (speedup_stated + 0 = speedup_stated AND speedup_stated < 1e308 AND speedup_stated > -1e308 AND speedup_stated > 0), 
	CONSTRAINT ck_reference_row_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_reference_row_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT ck_reference_row_kernels CHECK (kernels + 0 = kernels AND kernels < 1e308 AND kernels > -1e308 AND kernels >= 0), 
	CONSTRAINT ck_reference_row_forwards CHECK (forwards + 0 = forwards AND forwards < 1e308 AND forwards > -1e308 AND forwards >= 0), 
	CONSTRAINT ck_reference_row_images CHECK (images + 0 = images AND images < 1e308 AND images > -1e308 AND images >= 0), 
	CONSTRAINT ck_reference_row_top1 CHECK (top1 + 0 = top1 AND top1 < 1e308 AND top1 > -1e308), 
	CONSTRAINT ck_reference_row_top1_baseline CHECK (top1_baseline + 0 = top1_baseline AND top1_baseline < 1e308 AND top1_baseline > -1e308), 
	CONSTRAINT ck_reference_row_perplexity CHECK (perplexity + 0 = perplexity AND perplexity < 1e308 AND perplexity > -1e308), 
	CONSTRAINT ck_reference_row_keep_rate CHECK (keep_rate + 0 = keep_rate AND keep_rate < 1e308 AND keep_rate > -1e308), 
	CONSTRAINT ck_reference_row_r CHECK (r + 0 = r AND r < 1e308 AND r > -1e308), 
	CONSTRAINT ck_reference_row_sparsity CHECK (sparsity + 0 = sparsity AND sparsity < 1e308 AND sparsity > -1e308)
);
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
	bursts BLOB, 
	CONSTRAINT pk_sample PRIMARY KEY (attempt), 
	CONSTRAINT fk_sample_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "sample" VALUES(1,40,4,'[0, 1, 2, 3]','[1, 1, 1, 1]','half_width',X'780115947B38D5771CC7DB723999D3452E851C2A2B990735CD6DE723B994632E91516EC7259BC2C2E1F07539DF7C954B3BD89EB271967229C9B5916D51288F3D92A6131E73697BA8279C553433E1699FFDF57D9EDFEFF97CBEEFF7FBF3FA7CE52D4DF2BD690CEECA73E6ABDD09049F7D73A1469B82D210F7F95BC220EF7A09CF49C4204ADE1252E843C06534E0698A3E05F74D79AB038C814F645D0E4D6060A267EE35644F60F6585553D9071464CD239F7861BD0EF75E81348C81BFA4A7375E40A03782432C552878343672ADB04E39FF531D33EC5F322A5ED67223D031100D359A145AA3FA6A1F6733B0B66D70CB4961C05FFE6977859080EDAD583547ECAF2B4AB728CA607028EBAFE640D411B0B3C1FAB1278116412AEF5B350A9152B72336A751DFCCC04EAD2406E9BC03AB17BC095C69379C70E050B0DC1CF6AC41CCE0690B7D6985FD8364AA4CC38F8096B0EAD89C068582EF3B0A4BB1BF87CECFDEAA890C345F9C1F6BC27C1E9E3AB947A143412FE38D69611E0379FB5447530C83688B88A4E670029371B10F86311F7D7789BD661603FAA14BE0B57406CEB703D30CD0DF398E41907C1B05E1ECDA8A9402067BC3976CFBBF46FF6539C333A104ECC6B3FA2CD07FA370A1C2269641A0F9D091C154068FC4E2F1C6CF09F88A3ABA1E2B53B876B2DF5F259341E8F59EFA703C0BA52F6AF9FE048282AA436E63BEBB95A6ACE6315FDD5CC6F740FFCA92AF5A4DF904F49A54EFB81952701C0C6AAFC7DCBF9C73AEF4459FEF3169EA14EAB336FE71446140212F71D6F54E0E0373DE46C959CA60526521FCBE39017B9BABA2EC4D147EED97F572CF30B896F36A291AE7A4B1E350E6536702A51E8DCE4A46149246B313B8988B9BACBEEE7F1DC1EFF3B28A8F13D820F8A83F03EBD5853116B3E8DF67DB999851E46FDE6C6AA41AEBA3F882DEFB5C0A4E5EC71312E218AC3A9C9ACEC43E646250E483FE1DBEF39A30463E5B39C22131EABB6B5A69B6148FF37BA24D4C4E10A81540A8743D859B4BAB56D1F90C140BE61C7FF4DF5459CAB77322A06A295E84CD14248BF18A66D4DD961C272DC2FBAB2F89F83E2EC8BF91F79340CC376C6C32F8E3530CD68D7CE1B74B82398498E41E0F2470E6D1BED22B1B28084AA24E5C467DF3ABF7FE5443FE7C5522C62E23FF331E935B8691BF3E05272012732BD7BE58EB17CE20C942A63F8DFB135D3D776B05F975EB3D52AD82F7468E2AB4B471BE32CB1FE028F299980ECBDB91AF4BC96FB55FA12F69C632EF612E83FCE4DAB01A9CEFFE92D1F5F15B28A869B90FEA9D63D0A05FAB6F8C9CD575071CF53E86FA846FCC7EC17C8BCADBBA5F9FC4B94F28069290EF1DBFCF97751E2410D355F8EF55250A7F18BCB32F462E4D5DB3176691EF89AEF2069E038183B9FBFCFF51A5F06ED7DA3537F17F7D55714C25F2312DB2B353C6FD5B1677BF9EDB48412A7C39F61BE6E7BDDFB1BD04F531C300F5D2600203AD24397E45029DC215690FEA0BA55C87D358DFB9A4AB1DE74B20C2ECEF079EC87759EA56A367F8BDEAF0C5255B3C3D17F48BD20F1348281339923514BC6CF6CDB7A1EEED2BEBB24498C3F881D9D76541049CBAB709F271BEB17382D04E7C5F1CA537BE798B7B2E17CCA987B812A8192E765A447D3D624F850FFA8F0BD8708383FD9FEF49DBAAF219BE0FC0FA5A713FF85B5A567A850CFE03C8C0416A',NULL,X'78018D8E090AC03008046DF3FF3FC7A14C58425A2A84E8BA87A3AAAE7E773FCA7E3C63F1E74E1C0CEE6906A7E4D0EBF3A6F9CA483D3D5CFCF0324B7FFF5EADFBF20EF9E961B65ABDF1C87EE7E9A58E999EA2CF0C306671667599A15E2E3C35EED499E75DCC3C4A0EBFD8E91EB9703253FDAE01A7E4FEDDA3C90C7D2630EB00F1',NULL);
INSERT INTO "sample" VALUES(2,40,4,'[0, 1, 2, 3]','[1, 1, 1, 1]','half_width',X'78010D937F3CD4771CC77B88A39353DAF2334EC88FB5D5638A1DE99D9CA8A8F3B39B64E9C76ABB9CE6E7CE97735F3E5C3FA68D160DDDB24B670B89B0524DD6915BBAD5A69B477221BFC296589793B6F75F9F3FDE9FF7FBFDFABC9EAF4FD20241202D26105DBE5BBD208602C7ACF4CC9965340CF669EA7D13085885DB76C413023FCA0A58AD9114B43BF915EE5D4C83F407D7157A0981822DC14157B1BFD974EAB62C9C8212A7A795BCA5349879A42ACE61BD6A52FDA77B3281830E87AEF98450B025FAB4CD63EC0785679B3B4DA0B5A9786C3B4580777A922BD84681C17371941F93860191CE7CCD97042AB7CEAFD46510C88FAD3AA5C07A4DC917C5FBED68386E1C7238298FC0C3D566FED23802947395C0651D056AADC7FB27CC6990DDB04C4E49C3BDA24F87ECB308942CCE6D38194641AEFCA2BCDC8986AB4DFAE3BE89040279298B26F09E2453CB600B285076582B7E5E4EC3AB71D9EE47A82F74F6B297389580A0C1F8BAC41BF5193DBD29B5A061AB69DB9451268111A65D354348E098DD270B5F71291852458F272EA1C1D532F8FCDC51026F031B737B440422A539999A9D1454405DF55EF4E752B56AB808E7BABF2965D9E19EE337E2DCF5E8FF4B6D9B9116FDDFF3DBAC62471281A273FC96533904DC6A5EF46707516035659574DB8A06EF7BEA5005EAFFDCB33D2803F9B46B5E0C717650D0ED34ECF21E8386634743278BD3517FA19824A1BF6122756438F249F434B1159BD070A5FBEE9B20EC3736A49D67F11D39CFCF4ECCE17C96A591011BF7F3A79D2FF6E05EE5A166B9EC330263F2CE8425D86F3FDD31D6614BC3F47C594F1BCEB7F1AD96EE439DEA5EBEBDC9C714ACD338B80763BF1BA339341875357CCB1EDF8CF7EE8B32261E702828CDD62FB0457F468353CCD6A3EF0971A94E86B904CE58FAF57B211F4FCEF7BD8F0C6838D951DB178BBE8E7ACF74B8E29CD6BA3B51867C0AB8CCF4BB22531AAE19CFA4F5612E949DBAC1826C02B29B067A5614054D8C6723D7D19F23EDA29942E4AE6487B70EA0FF5DC97EE241CC4F6EFEA877A80DFA1FF1CB9DC8FDA8DBA3C63101EB92AEC2873AF4AF2556E95A614803776FB12E0E73ADFB6AE52A560A019580F3C169E413C404B7D798AF163BF6F561E4A671DCF54E8D14F3D7B941D51B41410A33EB0FC1221AAA375BA73104042E077220A480C02AEE55C134E65FB12DA0DB0CF58FD6D7171D40DFD57BE6BFD662CE03FEF6D928C4F9CEB32B74B1980FEEA5E4B50CE4B63844977600FF8FBF61B8CB327CDFAFDC4D3798C86FC82660E609EE2FE3DBEF1C384120BC7BDFCC47E86F40C94467E19C04DEB572E1C4609DFD52F8E14F6708ACC972D3E46FC2FF5977B76B15E6C375759E9739D6C7FEAB8CB7407EFC33573213917F8DBCBE9CC1A2611163BB431AFE5F55B6F65605723A72907C7300F96B94BA0DF9F87E1FFF95F78CB18F759F612C45BEEB1AAD237CFD29C80ED3CB1D503FBBD4F0775BCC576A59F11D219E8FFDDCE646F651B0AD68B94D29F28F2ECE3CCB437EE7FF6A6403EEA9536B4CCE0753309811FFEF529CDFDF38B67017726D38BCF63B0D7274DE92E713B6918290F5DAF618E4CB9BE5075D412E0F8517E21FE0FC0B96876B2771FF03A54AA930A341F38FBCF2F54902C97389C242CC91B056D4728B4741D1908B69C25B09289B9F593CC1FDFF030BE73F18',NULL,X'78016DCE0B0A80500844D13EFBDF735DE28048424CCE5CF59DC757D72BF7FB9DABE767CBD2E99BCBC3E4D5F75598B4B2C30C1F17635E6666F6BCF8FC7D4F6E26CDAB26EB1DF8F2C9DA4DCB6377CF2BB7338DAB787ACAC77A2375E78F6F6FBEDB66E64E4C5AEE0E466E4FBE9ABCFFB2D8FD9EF2EDCDDEDDE6631F307B00F1',NULL);
INSERT INTO "sample" VALUES(5,40,2,'[0, 1]','[1, 1]','half_width',X'780115917B2CD56118C7359143596B6EE338C9381B636EA5D4DAD762446C2A139D8AE6D811113BAD0B334DE4B21C722FB7B558448DA53097A5CC6DC24AE1B8D5AAC3EF25BCEF1C51A45F7F3FFB7E3ECFF37C3DA7574A7DEC182AC72B07136C088C9CDA6E696E523427EFBF58624FE0DD2D1E3E7385614E981D6F7294E0C61EB3BA2413861F14F63E4A0EB5AA4FAF249719840AB1FA7C2281E57240BE8517438A766A75953B81A69FAE9D2918EE24EC4B9705115C3769FAC01C191657F5AFBAB910F8FE916CBE1DA1100A6246E65308B2D21F08FBDA280ACFCE269CE3FDA2C8F54D2D3D86D18AB0036F7E716828940BFEE75F74CD186D3B1054AEA8BBFC351826934ECBE56104DFB2D3426FFFA5C89D68318E2825A8CE18CAEDB162B05434EC7C6A4ED0A7D3B82EE1F9AD1D6A035B15078B81D8597D6F86CCF1D127BAFC7D1A1D3D2AE92E86C849BBBBEDF504C581312B491314212DB256572382717B9FF81A9E3F36A0758A4A09A6D4BB3B66D41479B206E70B0604FE9F75E37B072806671E2BCB6209B40A6C24D48DE16486B66E2AEFFF629E3FA52764D0791F946A3BC74195569CDFC8F3FC1A87FBAB1E11441DA939D66DCA10D55F5013AF24702ED91239AEF0F348494906EF8B73ED2C8BE3FFC14479E18A7082EF632FAF591B30B4C796D1716382AF1EDE82E4450A912471A8487F01759D15BDAABD0C15379943603387D09CC3598A350ADFE95E4FAB68021DAD3161C416C57C4066B9FC2141B3A578D9CC83C150FA7AC195EF27F352CEC77A7E3F6988E6AAF76F0E13CF7F6E3BAD52C8DAB65C0E4D72F0EA3DCE72FC18CA05270CC5B504F737D64C9B94142DEE1D485FE2901BBE280E7EC7E7A3F50EEED8E210EC58B4C1DDA358923F1358530EFF004A4E5023',NULL,X'7801ADCD310A00200C0340FBFF4F4BD15B0AD9EA722606ACF34E7D9BBECB493BDAC9D4533F9DEF32EDE5E4F62EFDA3BF1AB00029',NULL);
CREATE TABLE sample_series (
	attempt INTEGER NOT NULL, 
	metric VARCHAR NOT NULL, 
	seconds BLOB NOT NULL, 
	CONSTRAINT pk_sample_series PRIMARY KEY (attempt, metric), 
	CONSTRAINT fk_sample_series_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "sample_series" VALUES(5,'time_per_char',X'78010D917D2CD4711CC78DA2A38E869A5B0F08C95F74B35577797331D331B34C337379C8C331A6E961487C6DFA7E19C258767591D12DA3F3D4244FF3B05CB443468AD4883C85A8F4706EFDFE7CFFF179BFDE9FF7BB716C7564BF8821A13881E9520852BD6AA4EABF14E9753D4B2F53095AF7E6C9930B1814F12D528BDB04CA4E6D91CA96615D3AA171151314088F2A470843976CE077898A20673971203B9CA13EB4A13F299B608F45F4827D3083812A52BD5144E033ACE8BFE0C5B01D704599718B801FE8F8CFA897C2D2F891FB837A4E9BF68D9AD652F00BA1BAC7F1DFE6573D69E6339CE9294F9C0824281FF46E9370F7D72797DB836F1064ADFA36C4193094EA3FFB579713BC8F3371D9D9A5302B19355FEF249889B0ECDDE7C6D02BB33512C8099E9BAD55A5D750389DFA73E08837C164944756B78CC158347FD884FB2F2448363BCD63F029D5D4676A085EA78857556F2816D315190E57096E9646AEB9EB29CED167335515044ECAD8A03B5B146D1B43764B51040753F96BBC768A8FCB8962CB4A8226C19CD62B80C1B531B4C990E3BB64DA38C5383234B22F86831C5F187E5C20E1FCD8F0A7E9242EEFFCCFFCC0C6130CDF5DA3537E2D12AC0FE9C6575628849B628B308EB7AADC1DF53467D891474A5AEF13E40E6D94CD08189C2BBBA4A21882776A5E9B7E8142FE5537DBCECBC159BDB369DE2106ABDAC743730E5C5F56175FC46F53B879E44EF53D2488683A36765747B1E96E2CAFEE20F83175BA2C3D94815F91B695C6EDD3E6DC3320E2F27D2BBE1C901B446077BEB44EB249A138F9D45E2B2668E1ED4AAC6319BAC348B4CD2B820E7FBF341F2D4546F67896DA8FC0FAC382D0564D51E1DB6C1F7289EBCF53E35F28A3A8ACBE669C2C25F80F9F6F3052');
INSERT INTO "sample_series" VALUES(5,'tpot',X'78010D917B2C14001CC7AF96DBCE24AFF2C8526899D2B05E4A7DC79CCA1F5998E822CEBC7A6C1EC3F2BC691ED1CAB91F79ED7733353BAFA2C428B492A1C49CD6AE86E651FCE194A279767F7EF7DD3EFB3EEA77254F3BF4315A0CBF14F40713224BB6CD345530C677F8BF5FF320BC958C25A606309A3745105511965BF5A31C6619ED56826C976E4261B0FDA46B0643AE4E78E2AC260C6F9F0AEAA9661818C934A64384D957C62C29657CD60E0892030876A3AD061B830C77F3DD1AF76642AEC9AAD9E63B86ED54668CF81AE1FA7CC744A12F63E598AC7CCE8560B635F37A6982B1655EAB153ED5F1D234BF63EA1979C2A0128D27C17CA132EFFC06E364596983D329C2923457182F63682D1CC20A2A09C279E3944011233326D1D4E92161B1A671A1B580611762F9A94A46C8284AB915DAC2480EEF78939E43B09D16195B6919A11DCDD6627F42A044EE33EEA0849DC195137BAA09B53269C89F55C65FF17E77DF7642D5A5B3BDB26546C40585A75F2D21BEE172A45717C326C132B6D299D05D7160F14523A337B3B8EE991F61E8DE377BB78B8CFC386F55423E61D5E3CC7A672123BC3832DA514C506744A8DAA3189DA7953DFF74FEBEEF433F146A466A40F954430FA1AF48F3C1AD4DA7FD7C5FF6EBF68BCB4EDA1B764889497D3D555E1BE1F860D068BA809135E768D3D249582BBCB16532CAF8559E637D504E681A1EA8908F310A3E4AA3D71FE8FA4B355F534718753FA52A8B18C26D2FEBFAA3F60CEFC173389244504565DF0DB9C3485368E523CF09AE6C58FF58F76F6A5E91AD6716A1AC5F79BF3F8961642CF4710A236C1A0ABA6275F9269D77829C08DE2B7A4AC13043EFD14D899F8E177075CD4529611C36CAA8ADD954E03F3A6133F8');
INSERT INTO "sample_series" VALUES(5,'ttft',X'78010D927D2CD4711CC7EB5ADD42EE86B5446623AD3C8D421ABD451E12D19C18DA79D83CB6483A42AD0C5377EDAA3F4C8AC34E842B796876A1B6F3F4F945B39625724D32F5878753B23B0FEBFBE77BFBECFD7EBD3F7BE7E8D34493F584D251BB37AB0F0925F9C5955D1A825AF930AFB08EE035EA5E592921F8470FDBC5BC26DC8993C5D52E133A46B225FFBE102E7ADA8B945904DB95466BB76042E64FCF88D91C424C23CF22E219A1376A8DBFC923E85C3FCE074909E5FDE6097921843DBA18216510C2B5837E7CE6AFF8AD8F5D2865BAC73059DF4548A812C983B584036784152E8F08DF162DD206FE10D647F2CB1CAE12E40EC99754ED048F73E9DBE61304EEEE89A71A05613C53CC3365BE9224ED8B82CBAC97A56CA4B58810BB2377C9B899604859F3198821AC28227E2C309E5D3E52B1939CE507AB85F67D84ADEA775F5F361196A7F9E225E62FAACB5D9B637950CE5FB7661C47BAF55E2E638CCB7BFDB4C72621D18A4BAF66BD3B5AAA031E6F11940D6F83525709C5E51B8E3BD95DCDE4FEF0BF2D84489B1B568232C2BED5A351537AC69911DA1B6DC5214C3EA3EB137298919CB78C5F21C81C3E3B09D99F3F08540973A1849092D6EF179EB0FF0A8D9B340384A2300FDBEE40425A065F23ED24ECEEDFD83BD14D70CF926D8B870955A3F4202F8CE9ECF73D898CBB028664C12D826B5BFC625238213F4B585B69C2E153F3A09BCB4D42FA73C3ACDB2B428BC97D735505C1396436F2388FC3E17BA9055D8CC75DB7ECE9CBF6A050393B0E1A117C45C56A5E0DCBBFE2EF271F22FC5A6F3BA49E269CF52A1C3B758D70D228DAF4A01907A9B653D01040689FBA5D9FC238CC02BDBB8FB1BDF8D9616C9CEDA279637AC8C186C37F9D2B41D3');
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
INSERT INTO "sweep" VALUES(1,'all',1,'text','What was stored?','{}',1.79539344553784728053e+09);
CREATE TABLE sweep_comparison_row (
	sweep INTEGER NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	CONSTRAINT pk_sweep_comparison_row PRIMARY KEY (sweep, comparison_id), 
	CONSTRAINT fk_sweep_comparison_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_comparison_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id)
);
INSERT INTO "sweep_comparison_row" VALUES(1,'127a1c6f1490a096');
INSERT INTO "sweep_comparison_row" VALUES(1,'14904e0129d8e228');
INSERT INTO "sweep_comparison_row" VALUES(1,'340694a37c90f489');
INSERT INTO "sweep_comparison_row" VALUES(1,'425d53a308403a17');
INSERT INTO "sweep_comparison_row" VALUES(1,'46ea4f3f67a49e58');
INSERT INTO "sweep_comparison_row" VALUES(1,'541e34edbc55b5a8');
INSERT INTO "sweep_comparison_row" VALUES(1,'5bae8cee2922af7f');
INSERT INTO "sweep_comparison_row" VALUES(1,'b9e8bb028c503621');
INSERT INTO "sweep_comparison_row" VALUES(1,'bd543784f5dc2745');
INSERT INTO "sweep_comparison_row" VALUES(1,'fd905e978e6bb74e');
CREATE TABLE sweep_job (
	sweep INTEGER NOT NULL, 
	job INTEGER NOT NULL, 
	CONSTRAINT pk_sweep_job PRIMARY KEY (sweep, job), 
	CONSTRAINT fk_sweep_job_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_job_job FOREIGN KEY(job) REFERENCES job (id)
);
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
INSERT INTO "text_scores" VALUES(6,'ab',X'789CE555DBAEA24A10FD175F9904BC214C320F0D340A02D28A0A9E9C07E42E0A0222E264FEFD74B167F6FE8739261A96ABAABA56F5EAE6E7A8CB8AB0EC9AD1F719F76D74CD9A475624A3EF23FF3CFA363AF78F8832A3946084742221A44C1041688B3484AC3DA21F093026146353A6B8FEE069BC0C587A01B6205F1AF816B0DF516CE6B49E7C01CC2794B14CA89721FA2C0EF1018D9763E0950EEA37345E120123C0760ECB0FEB33F0DF8A037E03F92CE025067C07DE84FEA4613D3260E80FFDF8412506A95FFBC123AA416792804EC853DE104720CFA25FA430D09C92401F0874941F3CE8042C0DBA4CC897D0E71C7C58C7F460DD04F0BC039D5009C5D0A730C413D0190C3A61AE3881BEF9412760DB830706B008735A95C01B90CF005667806FC01BD09F34AC670D987CEAF4EB1B55F8CF4F78187DA75B5D5CAF54B1918A457EF749922B9533B7B9EBFE261323C7F8AAB0176D8CAE2E328B8975CAB1ACA9AC7B3C9C4E39418A67CA4F4F5D49E8CCF3A1794CCB0C4BB9B1D61DBBB8E9447FDEABD60F6EC51839A1F836846418CCB29F7A0E99ECC8F2D0B881EB2AC50B297C3377F4F123E214993F9A78A1DEB6448FA6B8BF572A08C1A6B4E6A42CE11427F4CDD7D2E015622CC678DA8AE2F4811227456A162FC25C59B6C4D58D52E788754EEFCA7862955BC4AF9639F62F658A913E9FF33B23A3FD6D0C6F5126BE47EBAB85B3F02FC72AC388EBF35BBC243D22C64BCDBC60BD2D75646E845DAAA65A9A4B5B6EFE78EAF98327FA5E7E4B327E952ADADFC263569330DACBDB633AE1D94D4ACDF88A1F6F2D99CC44146BF62C4CEB2AA487C5D02EDA73B656886A956B6D6936B4FF9570B18AC07C5C38258DD69EA3AC459EACC5A9C131F7703A46E63866AF6DBA8D3804BBF828F3A800A79EC0134BB08804C700FD15189CFAEBDB6F8B8EFF58342DCD55299C196AD10C6779C435479958BD55855B76E68DD1AEBE5FFBDD84EEB3E26E3749E1CF0F57A21A825DDDD88C5A943968E3AE255AB69770EE07E505576B2205C7DC2C094747AC9A4E6699EA33C1B267BE2F643BE577445EF5CA393977D3170A59F91A2EED945A74E136E5BE5E508B2E0F5558AFB3805A280C9966F73C57D4A22B6AF39B93B5982852F088AFE1815A3CBA571353B1A6212717CC737FDCB7D4A24BA17FCB5383D5B6E866BEE3B3AA33E91EE178AA979DDAEBC4E497F34A2B0B5ADF791C4F7E7C7FD2FE4FD13CD3B9994CCF76FB8C2B3EBE6A3ABA68FE89DD1A6E9AA385B1B8A9E368CC13459C8A31EE4CCA575594F4FDDB8BF6D2E43825CB85A8B2C474ACE9EA806C9DDE56CEBA9B88F322CC91E16FA7A5D04D68FFCD7DAC8BEC8B5AD425BECBFA53442D5A75EEFCBEC0AF05C1C9A66012694CE7D7B7D8F5A28EC4F8FF62D17FBF8DEE7E567FDCA767BF89AE59110D97EA1FE7DECB267B64E5DF3D072A37A9232A7C7484F79A1A40C8C01E06DC00F601BB90ADC2BB480A060C3FEAEC131F073CBCCFC3017FE50FF58EC927EF7EC50FFCF92B7EF699FF51BFFBAA3FE40F12BCAFFCE4ABDFAFFA1FFD269F1273B882F88BAD6F386F553ADC64EBCD04DCB71B5BC52C73798B2C47842238B5B69AE973A763501008DDDE17361326369449B9DD794256B36423BC73E1DDEC306E849AE119FB30635AE7A9AA35125C2FB136B37A73753A3D7012B117C3C6B69C66F57EEB9AC109B594B8B627B7D8E14E5CE231CC733DB3D7F54B77BA74A71121297BC3DE1C96F7F7EB79BB6361E74D7A7BB9C09ED3264CDF88521B94B6D23F5BA76544C48913529936F96DE5A0BCDDAFD183EE63EC5F9BE8D77FF0E103B3',40,15752,0);
CREATE INDEX ix_comparison_method_model_image_size ON comparison (method, model, image_size);
CREATE INDEX ix_comparison_curve_id ON comparison (curve_id);
CREATE INDEX ix_comparison_question_id ON comparison (question_id);
CREATE INDEX ix_job_curve_group_resources ON job (curve_group, resources);
CREATE INDEX ix_job_state_id ON job (state, id);
CREATE INDEX ix_job_job_id ON job (job_id);
CREATE INDEX ix_sweep_comparison_row_comparison_id ON sweep_comparison_row (comparison_id);
CREATE INDEX ix_sweep_job_job ON sweep_job (job);
CREATE INDEX ix_calibration_environment_size_class_created_at ON calibration (environment, size_class, created_at);
CREATE INDEX ix_break_even_row_curve_id_environment ON break_even_row (curve_id, environment);
CREATE INDEX ix_cost_model_row_curve_id_environment ON cost_model_row (curve_id, environment);
CREATE INDEX ix_attempt_job_id ON attempt (job_id);
CREATE INDEX ix_attempt_job ON attempt (job);
CREATE INDEX ix_arm_result_arm_condition_id ON arm_result (arm_condition_id);
CREATE INDEX ix_failure_attempt ON failure (attempt);
CREATE INDEX ix_profile_row_attempt ON profile_row (attempt);
CREATE INDEX ix_profile_row_comparison_id ON profile_row (comparison_id);
CREATE INDEX ix_profile_row_digest ON profile_row (digest);
CREATE INDEX ix_peak_row_attempt ON peak_row (attempt);
CREATE INDEX ix_peak_row_environment ON peak_row (environment);
CREATE INDEX ix_comparison_attempt_attempt ON comparison_attempt (attempt);
CREATE INDEX ix_profile_time_row_attempt ON profile_time_row (attempt);
CREATE INDEX ix_kernel_row_attempt ON kernel_row (attempt);
CREATE INDEX ix_effect_row_question_id_environment_host_measured_at ON effect_row (question_id, environment, host, measured_at);
CREATE VIEW effect AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, effect_row.host, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.baseline, comparison.baseline_id, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, comparison.curve_id, effect_row.metric, effect_row.unit, effect_row.compared, effect_row.threads, effect_row.tokens, effect_row.tokens_final, effect_row.gmacs_baseline, effect_row.gmacs, effect_row.gmacs_overhead, effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0) AS gmacs_total, 1 - (effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0)) / (nullif(effect_row.gmacs_baseline, 0.0) + 0.0) AS gmacs_saved, effect_row.baseline_value, effect_row.arm_value, effect_row.arm_low, effect_row.arm_high, effect_row.device_value, effect_row.effect, effect_row.effect_low, effect_row.effect_high, effect_row.n, effect_row.rounds, effect_row.verdict, effect_row.floor, effect_row.flags, effect_row.analysis_version, effect_row.route, effect_row.process_sd, effect_row.calibration_id 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment 
WHERE (effect_row.effect IS NOT NULL OR effect_row.baseline_value IS NOT NULL OR effect_row.arm_value IS NOT NULL) AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW speedup AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, effect_row.host, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.baseline, comparison.baseline_id, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, comparison.curve_id, effect_row.metric, effect_row.threads, effect_row.tokens, effect_row.tokens_final, effect_row.gmacs_baseline, effect_row.gmacs, effect_row.gmacs_overhead, effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0) AS gmacs_total, 1 - (effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0)) / (nullif(effect_row.gmacs_baseline, 0.0) + 0.0) AS gmacs_saved, effect_row.baseline_value AS baseline_ms, effect_row.arm_value AS arm_ms, effect_row.device_value AS device_ms, effect_row.effect AS speedup, effect_row.effect_low AS speedup_low, effect_row.effect_high AS speedup_high, effect_row.n AS pairs, effect_row.rounds, effect_row.verdict, effect_row.floor, effect_row.flags, effect_row.route, effect_row.process_sd, effect_row.calibration_id 
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
CREATE VIEW break_even AS SELECT sweep.name AS sweep, break_even_row.environment, break_even_row.host, environment.device, environment.device_name, comparison.kind, break_even_row.metric, break_even_row.threads, break_even_row.axis, break_even_row.varied_parameter, break_even_row.verdict, break_even_row.x, break_even_row.x_low, break_even_row.x_high, break_even_row.direction, break_even_row.grid_limited, break_even_row.points, break_even_row.points_missing, break_even_row.why, break_even_row.floor, break_even_row.curve_id, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.baseline, comparison.baseline_id, break_even_row.fitted, break_even_row.worst_loss, break_even_row.largest_gain, break_even_row.pairs_factor, break_even_row.point_alpha, break_even_row.more_seconds 
FROM break_even_row JOIN sweep ON sweep.id = break_even_row.sweep JOIN comparison ON comparison.comparison_id = break_even_row.comparison_id JOIN environment ON environment.environment_id = break_even_row.environment 
WHERE NOT (EXISTS (SELECT newer.id 
FROM sweep AS newer 
WHERE sweep.name = newer.name AND sweep.revision < newer.revision));
CREATE VIEW cost_model AS SELECT sweep.name AS sweep, cost_model_row.environment, cost_model_row.host, environment.device, environment.device_name, comparison.kind, cost_model_row.metric, cost_model_row.threads, cost_model_row.points, cost_model_row.verdict, cost_model_row.misfit_p, cost_model_row.work_unit, cost_model_row.alpha_baseline, cost_model_row.alpha_baseline_low, cost_model_row.alpha_baseline_high, cost_model_row.beta_baseline, cost_model_row.beta_baseline_low, cost_model_row.beta_baseline_high, cost_model_row.alpha, cost_model_row.alpha_low, cost_model_row.alpha_high, cost_model_row.beta, cost_model_row.beta_low, cost_model_row.beta_high, cost_model_row.predicted_x, cost_model_row.predicted_x_low, cost_model_row.predicted_x_high, cost_model_row.measured_x, cost_model_row.measured_x_low, cost_model_row.measured_x_high, cost_model_row.curve_id, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.baseline, comparison.baseline_id 
FROM cost_model_row JOIN sweep ON sweep.id = cost_model_row.sweep JOIN comparison ON comparison.comparison_id = cost_model_row.comparison_id JOIN environment ON environment.environment_id = cost_model_row.environment 
WHERE NOT (EXISTS (SELECT newer.id 
FROM sweep AS newer 
WHERE sweep.name = newer.name AND sweep.revision < newer.revision));
CREATE VIEW failures AS SELECT DISTINCT effect_row.comparison_id, effect_row.question_id, effect_row.environment, environment.device, environment.device_name, comparison.kind, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.threads, comparison.baseline, comparison.baseline_id, failure.reason, failure.message, failure.attempt, effect_row.measured_at AS at, attempt.host 
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
CREATE VIEW arm AS SELECT arm_result.attempt, arm_result.arm, arm_result.arm_id, arm_result.kind, arm_result.condition_id, arm_result.arm_condition_id, attempt.environment, attempt.host, environment.device, environment.device_name, arm_result.model, arm_result.weights, arm_result.image_size, arm_result.batch_size, arm_result.dtype, arm_result.attention, arm_result.runtime, arm_result.seed, arm_result.method, arm_result.params, arm_result.data, arm_result.corruption, arm_result.severity, arm_result.prompt_tokens, arm_result.new_tokens, arm_result.kv_cache, arm_result.decoding, arm_result."exclusive", arm_result.spare_cores, arm_result.wait_policy, arm_result.pinning, arm_result.threads, arm_result.batch, arm_result.parameters, arm_result.tokens, arm_result.tokens_final, arm_result.gmacs, arm_result.gmacs_overhead, arm_result.gmacs + coalesce(arm_result.gmacs_overhead, 0.0) AS gmacs_total, metrics.latency_ms, metrics.ttft_ms, metrics.tpot_ms, metrics.time_per_char_ms, metrics.top1, metrics.bits_per_byte, metrics.top5, metrics.kl, metrics.margin_change, metrics.margin_change_p05, metrics.mcnemar_p, metrics.only_baseline_correct, metrics.only_arm_correct, metrics.unreadable, metrics.perplexity, metrics.top1_agreement, metrics.agreement, metrics.windows_skipped, metrics.bytes_scored, metrics.characters_scored, metrics.tokens_scored, metrics.device_latency_ms, metrics.throughput, metrics.steady_ratio, metrics.energy_per_image, metrics.relative_cost, metrics.diversity, metrics.cka, metrics.angle, metrics.tpot_p95_ms, metrics.prefill_tokens_per_s, metrics.decode_tokens_per_s, metrics.chars_per_s, metrics.base_tokens_per_s, metrics.tokenizer_s, metrics.load_s, metrics.achieved_gb_per_s, metrics.peak_gb_per_s, metrics.kv_bytes_needed, metrics.kv_bytes_resident, metrics.kv_bytes_virtual, metrics.rss_isolated_bytes, metrics.peak_rss_isolated_bytes, metrics.cuda_peak_allocated_isolated_bytes, metrics.cuda_peak_reserved_isolated_bytes, metrics.rss_before_bytes, metrics.peak_rss_bytes, metrics.cuda_allocated_before_bytes, metrics.cuda_peak_allocated_bytes, metrics.cuda_peak_reserved_bytes, metrics.mean_power, metrics.outlier_share, metrics.energy_per_token, metrics.energy_per_char, metrics.gmacs_ttft, metrics.gmacs_tpot, metrics.gmacs_overhead_ttft, metrics.gmacs_overhead_tpot, metrics.characters, metrics.tokens_decoded, metrics.forward_wall_ms, metrics.prefill_wall_ms, metrics.decode_wall_ms, metrics.achieved_sparsity, metrics.kernel_calls, metrics.fallback_calls, arm_result.flags AS arm_flags, attempt.flags AS job_flags, attempt.source, attempt.ended_at, arm_result.route 
FROM arm_result JOIN attempt ON attempt.id = arm_result.attempt JOIN environment ON environment.environment_id = attempt.environment LEFT OUTER JOIN (SELECT metric_row.attempt AS attempt, metric_row.arm AS arm, max(CASE WHEN (metric_row.metric = 'latency') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS latency_ms, max(CASE WHEN (metric_row.metric = 'ttft') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS ttft_ms, max(CASE WHEN (metric_row.metric = 'tpot') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS tpot_ms, max(CASE WHEN (metric_row.metric = 'time_per_char') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS time_per_char_ms, max(CASE WHEN (metric_row.metric = 'top1') THEN metric_row.value END) AS top1, max(CASE WHEN (metric_row.metric = 'bits_per_byte') THEN metric_row.value END) AS bits_per_byte, max(CASE WHEN (metric_row.metric = 'top5') THEN metric_row.value END) AS top5, max(CASE WHEN (metric_row.metric = 'kl') THEN metric_row.value END) AS kl, max(CASE WHEN (metric_row.metric = 'margin_change') THEN metric_row.value END) AS margin_change, max(CASE WHEN (metric_row.metric = 'margin_change_p05') THEN metric_row.value END) AS margin_change_p05, max(CASE WHEN (metric_row.metric = 'mcnemar_p') THEN metric_row.value END) AS mcnemar_p, max(CASE WHEN (metric_row.metric = 'only_baseline_correct') THEN metric_row.value END) AS only_baseline_correct, max(CASE WHEN (metric_row.metric = 'only_arm_correct') THEN metric_row.value END) AS only_arm_correct, max(CASE WHEN (metric_row.metric = 'unreadable') THEN metric_row.value END) AS unreadable, max(CASE WHEN (metric_row.metric = 'perplexity') THEN metric_row.value END) AS perplexity, max(CASE WHEN (metric_row.metric = 'top1_agreement') THEN metric_row.value END) AS top1_agreement, max(CASE WHEN (metric_row.metric = 'agreement') THEN metric_row.value END) AS agreement, max(CASE WHEN (metric_row.metric = 'windows_skipped') THEN metric_row.value END) AS windows_skipped, max(CASE WHEN (metric_row.metric = 'bytes_scored') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS bytes_scored, max(CASE WHEN (metric_row.metric = 'characters_scored') THEN metric_row.value END) AS characters_scored, max(CASE WHEN (metric_row.metric = 'tokens_scored') THEN metric_row.value END) AS tokens_scored, max(CASE WHEN (metric_row.metric = 'device_latency') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS device_latency_ms, max(CASE WHEN (metric_row.metric = 'throughput') THEN metric_row.value END) AS throughput, max(CASE WHEN (metric_row.metric = 'steady_ratio') THEN metric_row.value END) AS steady_ratio, max(CASE WHEN (metric_row.metric = 'energy_per_image') THEN metric_row.value END) AS energy_per_image, max(CASE WHEN (metric_row.metric = 'relative_cost') THEN metric_row.value END) AS relative_cost, max(CASE WHEN (metric_row.metric = 'diversity') THEN metric_row.value END) AS diversity, max(CASE WHEN (metric_row.metric = 'cka') THEN metric_row.value END) AS cka, max(CASE WHEN (metric_row.metric = 'angle') THEN metric_row.value END) AS angle, max(CASE WHEN (metric_row.metric = 'tpot_p95') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS tpot_p95_ms, max(CASE WHEN (metric_row.metric = 'prefill_tokens_per_s') THEN metric_row.value END) AS prefill_tokens_per_s, max(CASE WHEN (metric_row.metric = 'decode_tokens_per_s') THEN metric_row.value END) AS decode_tokens_per_s, max(CASE WHEN (metric_row.metric = 'chars_per_s') THEN metric_row.value END) AS chars_per_s, max(CASE WHEN (metric_row.metric = 'base_tokens_per_s') THEN metric_row.value END) AS base_tokens_per_s, max(CASE WHEN (metric_row.metric = 'tokenizer_s') THEN metric_row.value END) AS tokenizer_s, max(CASE WHEN (metric_row.metric = 'load_s') THEN metric_row.value END) AS load_s, max(CASE WHEN (metric_row.metric = 'achieved_gb_per_s') THEN metric_row.value END) AS achieved_gb_per_s, max(CASE WHEN (metric_row.metric = 'peak_gb_per_s') THEN metric_row.value END) AS peak_gb_per_s, max(CASE WHEN (metric_row.metric = 'kv_bytes_needed') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_needed, max(CASE WHEN (metric_row.metric = 'kv_bytes_resident') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_resident, max(CASE WHEN (metric_row.metric = 'kv_bytes_virtual') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_virtual, max(CASE WHEN (metric_row.metric = 'rss_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS rss_isolated_bytes, max(CASE WHEN (metric_row.metric = 'peak_rss_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS peak_rss_isolated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_allocated_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_allocated_isolated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_reserved_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_reserved_isolated_bytes, max(CASE WHEN (metric_row.metric = 'rss_before') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS rss_before_bytes, max(CASE WHEN (metric_row.metric = 'peak_rss') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS peak_rss_bytes, max(CASE WHEN (metric_row.metric = 'cuda_allocated_before') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_allocated_before_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_allocated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_allocated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_reserved') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_reserved_bytes, max(CASE WHEN (metric_row.metric = 'mean_power') THEN metric_row.value END) AS mean_power, max(CASE WHEN (metric_row.metric = 'outlier_share') THEN metric_row.value END) AS outlier_share, max(CASE WHEN (metric_row.metric = 'energy_per_token') THEN metric_row.value END) AS energy_per_token, max(CASE WHEN (metric_row.metric = 'energy_per_char') THEN metric_row.value END) AS energy_per_char, max(CASE WHEN (metric_row.metric = 'gmacs_ttft') THEN metric_row.value END) AS gmacs_ttft, max(CASE WHEN (metric_row.metric = 'gmacs_tpot') THEN metric_row.value END) AS gmacs_tpot, max(CASE WHEN (metric_row.metric = 'gmacs_overhead_ttft') THEN metric_row.value END) AS gmacs_overhead_ttft, max(CASE WHEN (metric_row.metric = 'gmacs_overhead_tpot') THEN metric_row.value END) AS gmacs_overhead_tpot, max(CASE WHEN (metric_row.metric = 'characters') THEN metric_row.value END) AS characters, max(CASE WHEN (metric_row.metric = 'tokens_decoded') THEN metric_row.value END) AS tokens_decoded, max(CASE WHEN (metric_row.metric = 'forward_wall') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS forward_wall_ms, max(CASE WHEN (metric_row.metric = 'prefill_wall') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS prefill_wall_ms, max(CASE WHEN (metric_row.metric = 'decode_wall') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS decode_wall_ms, max(CASE WHEN (metric_row.metric = 'achieved_sparsity') THEN metric_row.value END) AS achieved_sparsity, max(CASE WHEN (metric_row.metric = 'kernel_calls') THEN metric_row.value END) AS kernel_calls, max(CASE WHEN (metric_row.metric = 'fallback_calls') THEN metric_row.value END) AS fallback_calls 
FROM metric_row GROUP BY metric_row.attempt, metric_row.arm) AS metrics ON metrics.attempt = arm_result.attempt AND metrics.arm = arm_result.arm 
WHERE NOT (EXISTS (SELECT other.attempt 
FROM arm_result AS other JOIN attempt AS other_attempt ON other_attempt.id = other.attempt 
WHERE other.arm_condition_id = arm_result.arm_condition_id AND other_attempt.environment = attempt.environment AND other_attempt.host = attempt.host AND (CASE WHEN (((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',consistency/_check/_failed,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',state/_changed,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',token/_trace/_mismatch,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',text/_differs,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',text/_too/_short,' || '%' ESCAPE '/')) THEN 1 ELSE 0 END < CASE WHEN (((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',consistency/_check/_failed,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',state/_changed,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',token/_trace/_mismatch,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',text/_differs,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',text/_too/_short,' || '%' ESCAPE '/')) THEN 1 ELSE 0 END OR CASE WHEN (((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',consistency/_check/_failed,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',state/_changed,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',token/_trace/_mismatch,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',text/_differs,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',text/_too/_short,' || '%' ESCAPE '/')) THEN 1 ELSE 0 END = CASE WHEN (((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',consistency/_check/_failed,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',state/_changed,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',token/_trace/_mismatch,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',text/_differs,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',text/_too/_short,' || '%' ESCAPE '/')) THEN 1 ELSE 0 END AND other_attempt.id > attempt.id)));
CREATE VIEW generation AS SELECT arm.attempt, arm.arm, arm.arm_id, arm.kind, arm.condition_id, arm.arm_condition_id, arm.environment, arm.host, arm.device, arm.device_name, arm.model, arm.weights, arm.batch_size, arm.dtype, arm.attention, arm.runtime, arm.seed, arm.method, arm.params, arm.data, arm.prompt_tokens, arm.new_tokens, arm.kv_cache, arm.decoding, arm."exclusive", arm.spare_cores, arm.wait_policy, arm.pinning, arm.threads, arm.parameters, arm.tokens, arm.tokens_final, arm.gmacs, arm.gmacs_overhead, arm.gmacs_total, arm.ttft_ms, arm.tpot_ms, arm.time_per_char_ms, arm.tpot_p95_ms, arm.prefill_tokens_per_s, arm.decode_tokens_per_s, arm.chars_per_s, arm.base_tokens_per_s, arm.tokenizer_s, arm.load_s, arm.achieved_gb_per_s, arm.peak_gb_per_s, arm.kv_bytes_needed, arm.kv_bytes_resident, arm.kv_bytes_virtual, arm.rss_isolated_bytes, arm.peak_rss_isolated_bytes, arm.cuda_peak_allocated_isolated_bytes, arm.cuda_peak_reserved_isolated_bytes, arm.rss_before_bytes, arm.peak_rss_bytes, arm.cuda_allocated_before_bytes, arm.cuda_peak_allocated_bytes, arm.cuda_peak_reserved_bytes, arm.mean_power, arm.outlier_share, arm.energy_per_token, arm.energy_per_char, arm.gmacs_ttft, arm.gmacs_tpot, arm.gmacs_overhead_ttft, arm.gmacs_overhead_tpot, arm.characters, arm.tokens_decoded, arm.prefill_wall_ms, arm.decode_wall_ms, arm.achieved_sparsity, arm.kernel_calls, arm.fallback_calls, arm.arm_flags, arm.job_flags, arm.source, arm.ended_at, arm.route 
FROM arm 
WHERE arm.kind IN ('generation');
CREATE VIEW reference AS SELECT reference_row.reference, reference_row.entry, reference_row.environment, reference_row.source, reference_row.title, reference_row.owner, reference_row.year, reference_row.place, reference_row.url, reference_row.device_name, reference_row.software, reference_row.counter, reference_row.tuned, reference_row.label, reference_row.is_baseline, reference_row.method, reference_row.model, reference_row.setting, reference_row.image_size, reference_row.tokens, reference_row.tokens_final, reference_row.batch_size, reference_row.keep_rate, reference_row.r, reference_row.sparsity, reference_row.latency_ms, reference_row.latency_unit, reference_row.throughput, reference_row.gmacs_baseline, reference_row.gmacs, reference_row.speedup, reference_row.speedup_stated, reference_row.kernel_ms, reference_row.kernels, reference_row.forwards, reference_row.top1_baseline, reference_row.top1, reference_row.images, reference_row.perplexity, reference_row.counters, reference_row.note 
FROM reference_row;
CREATE VIEW execution AS SELECT attempt.id AS attempt, attempt.job_id, attempt.round, attempt.process, attempt.source, attempt.environment, attempt.host, environment.device, environment.device_name, attempt.started_at, attempt.ended_at, attempt.flags, nullif(substr(CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') THEN ',thermal_slowdown' ELSE '' END || CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') THEN ',hardware_slowdown' ELSE '' END || CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') THEN ',power_brake' ELSE '' END || CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') THEN ',quota_throttled' ELSE '' END || CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') THEN ',throttled' ELSE '' END, 2), '') AS quarantine, attempt.calibration_id, attempt.system_metrics 
FROM attempt JOIN environment ON environment.environment_id = attempt.environment;
CREATE VIEW profile AS SELECT profile_row.profile_id, profile_row.attempt, profile_row.arm, profile_row.tool, profile_row.phase, coalesce(attempt.source, profile_row.source) AS source, profile_row.file, profile_row.comparison_id, profile_row.side, profile_row.label, coalesce(arm_result.arm_id, CASE WHEN (profile_row.side = 'arm') THEN comparison.arm_id END) AS arm_id, coalesce(arm_result.kind, comparison.kind) AS kind, coalesce(arm_result.condition_id, comparison.condition_id) AS condition_id, coalesce(arm_result.method, CASE WHEN (profile_row.side = 'arm') THEN comparison.method END) AS method, coalesce(arm_result.params, CASE WHEN (profile_row.side = 'arm') THEN comparison.params END) AS params, coalesce(attempt.environment, profile_row.environment) AS environment, attempt.host, environment.device, coalesce(environment.device_name, profile_row.device_name) AS device_name, profile_time_row.time_class, 1000.0 * profile_time_row.seconds AS ms, profile_time_row.seconds / (nullif(profile_row.wall_s, 0.0) + 0.0) AS share, 1000.0 * profile_row.wall_s AS wall_ms, 1000.0 * profile_row.profiled_wall_s AS profiled_wall_ms, profile_row.forwards, profile_row.launches, profile_row.covered, profile_row.allocations, profile_row.allocated_bytes, (SELECT sum(kernel_row.gmacs) AS sum_1 
FROM kernel_row 
WHERE kernel_row.profile_id = profile_row.profile_id) AS gmacs, (SELECT sum(kernel_row.bytes_moved) AS sum_2 
FROM kernel_row 
WHERE kernel_row.profile_id = profile_row.profile_id) AS bytes_moved, (SELECT sum(kernel_row.seconds) AS sum_3 
FROM kernel_row 
WHERE kernel_row.profile_id = profile_row.profile_id AND kernel_row.gmacs > 0) / (nullif((SELECT sum(kernel_row.seconds) AS sum_4 
FROM kernel_row 
WHERE kernel_row.profile_id = profile_row.profile_id), 0.0) + 0.0) AS product_share, (SELECT max(peak_row.gflops) AS max_1 
FROM peak_row 
WHERE peak_row.attempt = profile_row.attempt AND peak_row.dtype = arm_result.dtype) AS peak_gflops, (SELECT max(peak_row.gb_per_s) AS max_2 
FROM peak_row 
WHERE peak_row.attempt = profile_row.attempt AND peak_row.dtype = arm_result.dtype) AS peak_gb_per_s, coalesce(arm_result.model, comparison.model) AS model, coalesce(arm_result.weights, comparison.weights) AS weights, coalesce(arm_result.image_size, comparison.image_size) AS image_size, coalesce(arm_result.batch_size, comparison.batch_size) AS batch_size, coalesce(arm_result.dtype, comparison.dtype) AS dtype, coalesce(arm_result.attention, comparison.attention) AS attention, coalesce(arm_result.runtime, comparison.runtime) AS runtime, coalesce(arm_result.seed, comparison.seed) AS seed, coalesce(arm_result.data, comparison.data) AS data, coalesce(arm_result.corruption, comparison.corruption) AS corruption, coalesce(arm_result.severity, comparison.severity) AS severity, coalesce(arm_result.prompt_tokens, comparison.prompt_tokens) AS prompt_tokens, coalesce(arm_result.new_tokens, comparison.new_tokens) AS new_tokens, coalesce(arm_result.kv_cache, comparison.kv_cache) AS kv_cache, coalesce(arm_result.decoding, comparison.decoding) AS decoding, coalesce(arm_result."exclusive", comparison."exclusive") AS "exclusive", coalesce(arm_result.spare_cores, comparison.spare_cores) AS spare_cores, coalesce(arm_result.wait_policy, comparison.wait_policy) AS wait_policy, coalesce(arm_result.pinning, comparison.pinning) AS pinning, arm_result.threads, arm_result.flags AS arm_flags, attempt.flags AS job_flags, profile_row.recorded_at 
FROM profile_row LEFT OUTER JOIN attempt ON attempt.id = profile_row.attempt LEFT OUTER JOIN arm_result ON arm_result.attempt = profile_row.attempt AND arm_result.arm = profile_row.arm LEFT OUTER JOIN comparison ON comparison.comparison_id = profile_row.comparison_id LEFT OUTER JOIN environment ON environment.environment_id = coalesce(attempt.environment, profile_row.environment) JOIN profile_time_row ON profile_time_row.profile_id = profile_row.profile_id;
CREATE VIEW kernel AS SELECT profile_row.profile_id, profile_row.attempt, profile_row.arm, profile_row.tool, profile_row.phase, coalesce(attempt.source, profile_row.source) AS source, profile_row.file, profile_row.comparison_id, profile_row.side, profile_row.label, coalesce(arm_result.arm_id, CASE WHEN (profile_row.side = 'arm') THEN comparison.arm_id END) AS arm_id, coalesce(arm_result.kind, comparison.kind) AS kind, coalesce(arm_result.condition_id, comparison.condition_id) AS condition_id, coalesce(arm_result.method, CASE WHEN (profile_row.side = 'arm') THEN comparison.method END) AS method, coalesce(arm_result.params, CASE WHEN (profile_row.side = 'arm') THEN comparison.params END) AS params, coalesce(attempt.environment, profile_row.environment) AS environment, attempt.host, environment.device, coalesce(environment.device_name, profile_row.device_name) AS device_name, kernel_row.place, kernel_row.name, kernel_row.activity, kernel_row.count, 1000.0 * kernel_row.seconds AS ms, kernel_row.gmacs, kernel_row.bytes_moved, (2 * kernel_row.gmacs) / (nullif(kernel_row.seconds, 0.0) + 0.0) AS gflops, (kernel_row.bytes_moved / (1000000000.0 + 0.0)) / (nullif(kernel_row.seconds, 0.0) + 0.0) AS gb_per_s, kernel_row.sm_throughput, kernel_row.memory_throughput, kernel_row.achieved_occupancy, kernel_row.l1_hit_rate, kernel_row.l2_hit_rate, profile_row.covered 
FROM profile_row LEFT OUTER JOIN attempt ON attempt.id = profile_row.attempt LEFT OUTER JOIN arm_result ON arm_result.attempt = profile_row.attempt AND arm_result.arm = profile_row.arm LEFT OUTER JOIN comparison ON comparison.comparison_id = profile_row.comparison_id LEFT OUTER JOIN environment ON environment.environment_id = coalesce(attempt.environment, profile_row.environment) JOIN kernel_row ON kernel_row.profile_id = profile_row.profile_id;
CREATE VIEW view_fingerprint AS SELECT 'e1840da3f57669b203d6058cb71f56682ecbd53ac81fdea810f54be9a06ed65c' AS fingerprint;
COMMIT;
