-- A store as schema 0001 wrote it: one sweep, two jobs, one failed arm. Made once; never to be changed.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
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
	readings VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	CONSTRAINT pk_attempt PRIMARY KEY (id), 
	CONSTRAINT ck_attempt_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_attempt_ended_at CHECK (ended_at + 0 = ended_at AND ended_at < 1e308 AND ended_at > -1e308 AND ended_at >= started_at), 
	CONSTRAINT ck_attempt_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n > 0), 
	CONSTRAINT ck_attempt_started_at CHECK (started_at + 0 = started_at AND started_at < 1e308 AND started_at > -1e308 AND started_at > 0), 
	CONSTRAINT fk_attempt_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_attempt_job FOREIGN KEY(job) REFERENCES job (id), 
	CONSTRAINT uq_attempt_digest UNIQUE (digest)
);
INSERT INTO "attempt" VALUES(1,'a60f523aaca93cece6bc2bf61a142ddc36b434442481033a4cdf79d3ae063604',NULL,'79682b84fadb581f',1,0,'3726d88f8db4b006','here',1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"contents":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":0.16,"gmacs_method":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.10666666666666667,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":2,"gmacs":0.10666666666666667,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":514.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"readings":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(2,'190f78b97f30ecc43d9344f3596b6f3de1189e751c6ee9df1d8460a7873f4ee6',NULL,'07937fa63e679ee3',1,0,'3726d88f8db4b006','here',1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":128,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"contents":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":0.64,"gmacs_method":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":2,"gmacs":0.4266666666666667,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":64,"tokens_final":65,"trace":[[65,65]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":514.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[{"arm":1,"reason":"out_of_memory","message":"no room","detail":""}],"readings":{"load":0.5},"flags":[],"commit":"0123abc"}');
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
	CONSTRAINT pk_break_even_row PRIMARY KEY (sweep, curve_id, environment, axis, crossing), 
	CONSTRAINT ck_break_even_row_axis CHECK (axis IN ('tokens', 'gmacs')), 
	CONSTRAINT ck_break_even_row_direction CHECK (direction IN ('gains', 'loses')), 
	CONSTRAINT ck_break_even_row_verdict CHECK (verdict IN ('crossing', 'always', 'never', 'unclear')), 
	CONSTRAINT ck_break_even_row_points CHECK (points + 0 = points AND points < 1e308 AND points > -1e308 AND points >= 0), 
	CONSTRAINT ck_break_even_row_x CHECK (x + 0 = x AND x < 1e308 AND x > -1e308 AND x > 0), 
	CONSTRAINT ck_break_even_row_x_high CHECK (x_high + 0 = x_high AND x_high < 1e308 AND x_high > -1e308 AND x_high > 0), 
	CONSTRAINT ck_break_even_row_x_low CHECK (x_low + 0 = x_low AND x_low < 1e308 AND x_low > -1e308 AND x_low > 0), 
	CONSTRAINT fk_break_even_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_break_even_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_break_even_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id)
);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','tokens',0,'fd905e978e6bb74e',2,'crossing',2.15456581761784100588e+01,16.0,64.0,'gains',1,2,'Begins to pay between tokens = 16 and 64 (neighbouring points). Along tokens: slower at 16, faster at 64.',0.01,1);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','gmacs',0,'fd905e978e6bb74e',2,'crossing',2.1545658176178408838e-01,0.16,0.64,'gains',1,2,'Begins to pay between gmacs = 0.16 and 0.64 (neighbouring points). Along gmacs: slower at 0.16, faster at 0.64.',0.01,1);
INSERT INTO "break_even_row" VALUES(1,'6f03b8691c63fdb6','3726d88f8db4b006','tokens',0,'504525e3be872db0',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along tokens: slower at 16.',0.01,1);
INSERT INTO "break_even_row" VALUES(1,'6f03b8691c63fdb6','3726d88f8db4b006','gmacs',0,'504525e3be872db0',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along gmacs: slower at 0.16.',0.01,1);
CREATE TABLE comparison (
	comparison_id VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	curve_id VARCHAR NOT NULL, 
	arm_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	weights VARCHAR NOT NULL, 
	image_size INTEGER NOT NULL, 
	batch_size INTEGER NOT NULL, 
	threads INTEGER, 
	dtype VARCHAR NOT NULL, 
	attention VARCHAR NOT NULL, 
	runtime VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	method VARCHAR NOT NULL, 
	params VARCHAR NOT NULL, 
	baseline VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	contents VARCHAR NOT NULL, 
	CONSTRAINT pk_comparison PRIMARY KEY (comparison_id), 
	CONSTRAINT ck_comparison_batch_size CHECK (batch_size + 0 = batch_size AND batch_size < 1e308 AND batch_size > -1e308 AND batch_size > 0), 
	CONSTRAINT ck_comparison_image_size CHECK (image_size + 0 = image_size AND image_size < 1e308 AND image_size > -1e308 AND image_size > 0)
);
INSERT INTO "comparison" VALUES('504525e3be872db0','0783abb7a018c837','6f03b8691c63fdb6','cd3a9678c7b7f3d7','latency','cpu','deit_tiny_patch16_224','random',64,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.3,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('5eb92797e450f8be','86ce02bec6ac3564','6f03b8691c63fdb6','cd3a9678c7b7f3d7','latency','cpu','deit_tiny_patch16_224','random',128,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.3,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":128,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('b9e8bb028c503621','ca7cccb30b9363f1','60dee36d4c9be9e1','212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',64,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
INSERT INTO "comparison" VALUES('fd905e978e6bb74e','2ebb4e69d576d0a2','60dee36d4c9be9e1','212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',128,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":128,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}');
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
INSERT INTO "failure" VALUES(1,2,1,'out_of_memory','no room','');
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
	document VARCHAR NOT NULL, 
	CONSTRAINT pk_job PRIMARY KEY (id), 
	CONSTRAINT ck_job_state CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled', 'split')), 
	CONSTRAINT ck_job_attempts CHECK (attempts + 0 = attempts AND attempts < 1e308 AND attempts > -1e308 AND attempts >= 0), 
	CONSTRAINT fk_job_parent FOREIGN KEY(parent) REFERENCES job (id)
);
CREATE TABLE measured_arm (
	attempt INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	arm_id VARCHAR NOT NULL, 
	gmacs FLOAT NOT NULL, 
	gmacs_method FLOAT NOT NULL, 
	parameters BIGINT NOT NULL, 
	trainable_parameters BIGINT NOT NULL, 
	batch INTEGER NOT NULL, 
	tokens INTEGER NOT NULL, 
	tokens_final INTEGER NOT NULL, 
	threads INTEGER NOT NULL, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_measured_arm PRIMARY KEY (attempt, arm), 
	CONSTRAINT ck_measured_arm_batch CHECK (batch + 0 = batch AND batch < 1e308 AND batch > -1e308 AND batch > 0), 
	CONSTRAINT ck_measured_arm_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_measured_arm_gmacs_method CHECK (gmacs_method + 0 = gmacs_method AND gmacs_method < 1e308 AND gmacs_method > -1e308 AND gmacs_method >= 0), 
	CONSTRAINT ck_measured_arm_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads > 0), 
	CONSTRAINT ck_measured_arm_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_measured_arm_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT fk_measured_arm_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "measured_arm" VALUES(1,0,'6cb99fb9c27e3323',0.16,0.0,5717416,5717416,1,16,17,2,'');
INSERT INTO "measured_arm" VALUES(1,1,'cd3a9678c7b7f3d7',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "measured_arm" VALUES(1,2,'212af6ab5482de97',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "measured_arm" VALUES(2,0,'6cb99fb9c27e3323',0.64,0.0,5717416,5717416,1,64,65,2,'');
INSERT INTO "measured_arm" VALUES(2,2,'212af6ab5482de97',4.26666666666666694052e-01,0.001,5717416,5717416,1,64,65,2,'');
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
	CONSTRAINT ck_metric_row_high CHECK (high + 0 = high AND high < 1e308 AND high > -1e308), 
	CONSTRAINT ck_metric_row_low CHECK (low + 0 = low AND low < 1e308 AND low > -1e308), 
	CONSTRAINT ck_metric_row_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n >= 0), 
	CONSTRAINT ck_metric_row_value CHECK (value + 0 = value AND value < 1e308 AND value > -1e308), 
	CONSTRAINT fk_metric_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "metric_row" VALUES(1,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,2,'peak_rss',514.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,2,'peak_rss',514.0,'MiB',NULL,NULL,NULL);
CREATE TABLE pairing (
	comparison_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	baseline INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	failure INTEGER, 
	CONSTRAINT pk_pairing PRIMARY KEY (comparison_id, attempt), 
	CONSTRAINT fk_pairing_attempt FOREIGN KEY(attempt) REFERENCES attempt (id), 
	CONSTRAINT fk_pairing_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_pairing_failure FOREIGN KEY(failure) REFERENCES failure (id)
);
INSERT INTO "pairing" VALUES('504525e3be872db0',1,0,1,NULL);
INSERT INTO "pairing" VALUES('b9e8bb028c503621',1,0,2,NULL);
INSERT INTO "pairing" VALUES('5eb92797e450f8be',2,0,1,1);
INSERT INTO "pairing" VALUES('fd905e978e6bb74e',2,0,2,NULL);
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
INSERT INTO "sample" VALUES(1,30,3,'[0, 1, 2]','[1, 1, 1]','half_width',X'78010D927D2CD4711CC7A52125693325852DA1849D99A7D2BBA5DC3A4F2945933944A82529797EFCF6BDBE2A0FB59DA7504D6CB4EC289331D9614EC7AA89EE2A42BA99A763320FB7D6EFDFCF1FEFCFFBF5F9BC3E6C58FC4CCD25C8971F6C5D2E6608E69D8F53FCA18838A05C8DC82170913B89C5C9DCDC5112424728B426F527255D0492FE84E4D55186765FD5EE27651439D6B3262B6E0471BF5D02266E31AC3D29CE1F9652C87695B8476913A81D87A6BD1F32E804E56B04A9143A2BE38AE74104BE63BD27F5B8FC3EF18648B78962BB7D645A6E3141685950117F8CCBD15A4E51BFA7980A6EB8BF554AB0DA7FEFBEF54D8625B947DCE2578A120FCBE8E4060259AE73A5B48621E75462F01931855DAECF429F80E3327DD4DF98CEE0E45E9DE535C471B51E2975F12658AC099854717D6481E189366D14D35F22769E2B25D0547429DED433446A74DD0E73BC467E7FC35A43084ED44E27ED2F6198519888CE2C52FC12863BF5C808C2CD06622BF80C46F3AF2CCEEE1361C65F767DB69B209D6EDA6D1964E8F537B6557CA2504AC2326EC713182C1FBEA05C67E0CFB5683A9D45D057080A794A821FC93EA6A16A8605B9E0349FDB9BA0509BCC1C23E0E7358EFB97335C322C0B1D5051387AF698F6B812C4C4E9491FB630C827EAD28892C2B663E45F760D41A95CF6F88E2F43B4B77BAD5625857BB94380C1550287D7A1F3117E0C7E9F9F5D786923C2DDF9F8EE2521C1B5BA8D095E13837EE6DC8AB09962E9862AA96888C08AC5A4BCE5FA9CDDC5F74BE07C982EB0EAA8DA46703C28A35DBB8ABB83976C2A7286C2F269E79EFE26022FD7B4418F4406FF521FF583A32224EC95C2CC85A04999F5228AFB57F5C7EBAB87D62806DF458F266512D46F7EEFB3362FC09230D32A5E4ED16CF8AD407699205B6367ACCA6178F154C273CEA3B0F72C7C19C87975254B5EB843CAB06E23F6114E51B4EDD3CAE3711E560BCC8D2EC632F8B6780FD75B89F01F39A55D08',NULL,X'78016D8E010A002008C4AAFF3FBA460C462448E739B5396EACF390C43C89E625ACD1F5CBB7E79CAC5C99577BC3995F5FAF0C9EB3F6A9FB07EF97B3FF7AB0E5D929D3BBD5EED2EBBC7A034174005B');
INSERT INTO "sample" VALUES(2,30,2,'[0, 2]','[1, 1]','half_width',X'780101E0011FFEC0FA1FDD7981843F04B8AE2847457B3FCE926378909C843F827CCDF3D7557B3FC5098FDEDE5E843FCF386E6AD4677B3F00E209E2B1BF843FBE80BBE406917B3F41F81C101D56843FAB8839C99AF67A3FBBB6F8D84D5A843F297DAD6A65517B3FC90F91396302843FBDCCB98E3A3F7B3F9ECB0FB0F639843F06F07F22811B7B3FA47ED1336C5E843F874EC63C6E387B3F0A2D627A8190843FD9F715CCC3977B3F799AA6392574843FD91FE35CAFAE7B3FC5A02CD11E58843F545C134B1F677B3F913A206576AA843F829BD1E914557B3F3F2219350B54843FE4560F935E0E7B3F9D47A3D3EF62843F6F11F197EA5D7B3F61B62A973646843F4455BB46E63F7B3FCFFC08E68972843F876E82BC6A747B3F31AFFF7A2586843FA9FBA1A964677B3F104DF55DB658843F54D1D2AE73457B3FEC9094F924A4843F81D62943B0B77B3FB3E2D4534839843F13B6608C24B97B3FE94EC96BEBC1843F738F509556857B3FB113DF70C388843F7842D2A598387B3F718E21DCE1C7843F891B0BFCE3D87B3F09D94A8E31DA843F30E5B6D60BAB7B3F0952438AA68D843F3F77961E8CFA7A3F3968BC7FA57A843FCDAAE96D8C7C7B3F2F3DC419C437843FC3C5E5AD2E6A7B3F37CB2F3B7791843FE0FAC853557F7B3FDFD6070B2A3D843F13EE772B67207B3F5427E07C',NULL,X'7801636060606004621000D130363A9F54715CFA61E610A261FA61344C3D8C0FA3D1C5D1F93075301A000F40001F');
CREATE TABLE speedup_row (
	comparison_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	metric VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	measured_at VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	analysis_version INTEGER NOT NULL, 
	floor FLOAT NOT NULL, 
	failure INTEGER, 
	threads INTEGER, 
	tokens INTEGER, 
	tokens_final INTEGER, 
	gmacs_baseline FLOAT, 
	gmacs FLOAT, 
	gmacs_method FLOAT, 
	baseline_ms FLOAT, 
	method_ms FLOAT, 
	device_ms FLOAT, 
	speedup FLOAT, 
	speedup_low FLOAT, 
	speedup_high FLOAT, 
	pairs INTEGER, 
	rounds INTEGER, 
	verdict VARCHAR, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_speedup_row PRIMARY KEY (comparison_id, environment, metric), 
	CONSTRAINT ck_speedup_row_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_speedup_row_verdict CHECK (verdict IN ('faster', 'slower', 'same', 'unclear')), 
	CONSTRAINT ck_speedup_row_baseline_ms CHECK (baseline_ms + 0 = baseline_ms AND baseline_ms < 1e308 AND baseline_ms > -1e308 AND baseline_ms > 0), 
	CONSTRAINT ck_speedup_row_device_ms CHECK (device_ms + 0 = device_ms AND device_ms < 1e308 AND device_ms > -1e308 AND device_ms > 0), 
	CONSTRAINT ck_speedup_row_floor CHECK (floor + 0 = floor AND floor < 1e308 AND floor > -1e308 AND floor >= 0), 
	CONSTRAINT ck_speedup_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_speedup_row_gmacs_baseline CHECK (gmacs_baseline + 0 = gmacs_baseline AND gmacs_baseline < 1e308 AND gmacs_baseline > -1e308 AND gmacs_baseline >= 0), 
	CONSTRAINT ck_speedup_row_gmacs_method CHECK (gmacs_method + 0 = gmacs_method AND gmacs_method < 1e308 AND gmacs_method > -1e308 AND gmacs_method >= 0), 
	CONSTRAINT ck_speedup_row_method_ms CHECK (method_ms + 0 = method_ms AND method_ms < 1e308 AND method_ms > -1e308 AND method_ms > 0), 
	CONSTRAINT ck_speedup_row_pairs CHECK (pairs + 0 = pairs AND pairs < 1e308 AND pairs > -1e308 AND pairs >= 0), 
	CONSTRAINT ck_speedup_row_rounds CHECK (rounds + 0 = rounds AND rounds < 1e308 AND rounds > -1e308 AND rounds >= 0), 
	CONSTRAINT ck_speedup_row_speedup CHECK (speedup + 0 = speedup AND speedup < 1e308 AND speedup > -1e308 AND speedup > 0), 
	CONSTRAINT ck_speedup_row_speedup_high CHECK (speedup_high + 0 = speedup_high AND speedup_high < 1e308 AND speedup_high > -1e308 AND speedup_high > 0), 
	CONSTRAINT ck_speedup_row_speedup_low CHECK (speedup_low + 0 = speedup_low AND speedup_low < 1e308 AND speedup_low > -1e308 AND speedup_low > 0), 
	CONSTRAINT ck_speedup_row_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads >= 0), 
	CONSTRAINT ck_speedup_row_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_speedup_row_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT fk_speedup_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_speedup_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_speedup_row_failure FOREIGN KEY(failure) REFERENCES failure (id)
);
INSERT INTO "speedup_row" VALUES('504525e3be872db0','3726d88f8db4b006','latency','0783abb7a018c837','2026-09-21T14:13:20.000Z','imported',1,0.01,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.9867818027749368781e+00,1.24836532928293557635e+01,NULL,0.798227410873574,7.94746104459001179165e-01,8.03901732716133299305e-01,30,1,'slower','');
INSERT INTO "speedup_row" VALUES('b9e8bb028c503621','3726d88f8db4b006','latency','ca7cccb30b9363f1','2026-09-21T14:13:20.000Z','imported',1,0.01,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.9867818027749368781e+00,1.11507791490218082235e+01,NULL,8.96360059314542434449e-01,8.89781171991235853013e-01,9.01670804846744222693e-01,30,1,'slower','');
INSERT INTO "speedup_row" VALUES('5eb92797e450f8be','3726d88f8db4b006','latency','86ce02bec6ac3564','2026-09-21T14:13:20.000Z','imported',1,0.01,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "speedup_row" VALUES('fd905e978e6bb74e','3726d88f8db4b006','latency','2ebb4e69d576d0a2','2026-09-21T14:13:20.000Z','imported',1,0.01,NULL,2,64,65,0.64,4.26666666666666694052e-01,0.001,9.98562247966623,6.68575221074061065706e+00,NULL,1.49224964947828020456e+00,1.48986557626657534214e+00,1.50267577566094168162e+00,30,1,'faster','');
CREATE TABLE sweep (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	text VARCHAR NOT NULL, 
	question VARCHAR NOT NULL, 
	settings VARCHAR NOT NULL, 
	submitted_at FLOAT NOT NULL, 
	CONSTRAINT pk_sweep PRIMARY KEY (id), 
	CONSTRAINT ck_sweep_revision CHECK (revision + 0 = revision AND revision < 1e308 AND revision > -1e308 AND revision > 0), 
	CONSTRAINT uq_sweep_name_revision UNIQUE (name, revision)
);
INSERT INTO "sweep" VALUES(1,'old',1,'schema: 1
name: old
','Does it survive?','{}',1790000000.0);
CREATE TABLE sweep_comparison_row (
	sweep INTEGER NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	CONSTRAINT pk_sweep_comparison_row PRIMARY KEY (sweep, comparison_id), 
	CONSTRAINT fk_sweep_comparison_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_sweep_comparison_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id)
);
INSERT INTO "sweep_comparison_row" VALUES(1,'504525e3be872db0');
INSERT INTO "sweep_comparison_row" VALUES(1,'5eb92797e450f8be');
INSERT INTO "sweep_comparison_row" VALUES(1,'b9e8bb028c503621');
INSERT INTO "sweep_comparison_row" VALUES(1,'fd905e978e6bb74e');
CREATE TABLE sweep_job (
	sweep INTEGER NOT NULL, 
	job INTEGER NOT NULL, 
	CONSTRAINT pk_sweep_job PRIMARY KEY (sweep, job), 
	CONSTRAINT fk_sweep_job_job FOREIGN KEY(job) REFERENCES job (id), 
	CONSTRAINT fk_sweep_job_sweep FOREIGN KEY(sweep) REFERENCES sweep (id)
);
CREATE INDEX ix_comparison_curve_id ON comparison (curve_id);
CREATE INDEX ix_comparison_question_id ON comparison (question_id);
CREATE INDEX ix_job_job_id ON job (job_id);
CREATE INDEX ix_job_state_id ON job (state, id);
CREATE INDEX ix_attempt_job ON attempt (job);
CREATE INDEX ix_attempt_job_id ON attempt (job_id);
CREATE INDEX ix_break_even_row_curve_id_environment ON break_even_row (curve_id, environment);
CREATE INDEX ix_sweep_comparison_row_comparison_id ON sweep_comparison_row (comparison_id);
CREATE INDEX ix_sweep_job_job ON sweep_job (job);
CREATE INDEX ix_failure_attempt ON failure (attempt);
CREATE INDEX ix_pairing_attempt ON pairing (attempt);
CREATE INDEX ix_speedup_row_question_id_environment_metric_measured_at ON speedup_row (question_id, environment, metric, measured_at);
CREATE VIEW speedup AS 
SELECT
  r.comparison_id, r.question_id, c.arm_id, c.kind, r.metric, r.source, r.measured_at, r.environment, e.device, e.device_name,
  c.model, c.weights, c.method, c.params, c.baseline, c.dtype, c.attention, c.runtime, r.threads, c.batch_size, c.image_size,
  r.tokens, r.tokens_final, r.gmacs_baseline, r.gmacs, r.gmacs_method, r.baseline_ms, r.method_ms, r.device_ms,
  r.speedup, r.speedup_low, r.speedup_high, r.pairs, r.rounds, r.verdict, r.floor, r.flags, c.seed, c.curve_id
FROM speedup_row AS r
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment
WHERE r.speedup IS NOT NULL AND 
  NOT EXISTS (
    SELECT 1 FROM speedup_row AS newer
    WHERE newer.question_id = r.question_id AND newer.environment = r.environment AND newer.metric = r.metric
      AND (newer.measured_at > r.measured_at
           OR (newer.measured_at = r.measured_at AND newer.comparison_id > r.comparison_id)));
CREATE VIEW sweep_comparison AS 
SELECT s.name AS sweep, l.comparison_id
FROM sweep_comparison_row AS l
JOIN sweep AS s ON s.id = l.sweep
WHERE 
  NOT EXISTS (SELECT 1 FROM sweep AS newer WHERE newer.name = s.name AND newer.revision > s.revision);
CREATE VIEW break_even AS 
SELECT
  s.name AS sweep, b.environment, e.device_name, c.model, c.method, c.params, c.baseline, c.dtype, c.attention, c.runtime,
  c.batch_size, b.axis, b.verdict, b.x, b.x_low, b.x_high, b.points,
  b.direction, b.grid_limited, b.why, e.device, c.weights, b.threads, c.seed, b.floor, b.curve_id
FROM break_even_row AS b
JOIN sweep AS s ON s.id = b.sweep
JOIN comparison AS c ON c.comparison_id = b.comparison_id
JOIN environment AS e ON e.environment_id = b.environment
WHERE 
  NOT EXISTS (SELECT 1 FROM sweep AS newer WHERE newer.name = s.name AND newer.revision > s.revision);
CREATE VIEW failures AS 
SELECT
  r.comparison_id, r.question_id, r.environment, e.device, e.device_name, c.model, c.weights, c.method, c.params, c.baseline,
  c.dtype, c.attention, c.runtime, c.threads, c.batch_size, c.image_size, f.reason, f.message, r.measured_at AS at, f.attempt
FROM speedup_row AS r
JOIN failure AS f ON f.id = r.failure
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment
WHERE 
  NOT EXISTS (
    SELECT 1 FROM speedup_row AS newer
    WHERE newer.question_id = r.question_id AND newer.environment = r.environment AND newer.metric = r.metric
      AND (newer.measured_at > r.measured_at
           OR (newer.measured_at = r.measured_at AND newer.comparison_id > r.comparison_id)));
CREATE VIEW metric AS 
SELECT m.attempt, m.arm, m.metric, m.value, m.unit, m.low, m.high, m.n, a.arm_id, t.environment, t.flags
FROM metric_row AS m
JOIN attempt AS t ON t.id = m.attempt
LEFT JOIN measured_arm AS a ON a.attempt = m.attempt AND a.arm = m.arm;
COMMIT;
