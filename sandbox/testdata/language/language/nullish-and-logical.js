// returns: [0,1,"n","e",false,null,0,1,2,0,null,"undefined",null]
const cfg = { zero: 0, empty: "", no: false, nil: null };
return [cfg.zero ?? 1, cfg.zero || 1, cfg.nil ?? "n", cfg.empty || "e", cfg.no ?? true, cfg.missing?.deep.er, cfg?.["zero"], (cfg.a ||= 1, cfg.a), (cfg.nil ??= 2, cfg.nil), (cfg.zero &&= 9, cfg.zero), cfg.f?.(), typeof cfg.g?.h, null?.[cfg.boom.bang]];
